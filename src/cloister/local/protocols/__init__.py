"""What every protocol is, whatever is asked: promise, coins, reports; repetition, levels, shuffling; which one to take."""
