"""What leaves: released tables with their margins, read from noisy values alone; as frames, pictures, text and back."""
