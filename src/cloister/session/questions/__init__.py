"""What can be asked at the door, and what is known of a question before it is planned: public facts alone."""
