"""Trees, forests and boosting: private splits and noisy leaves."""
