"""Tables in, numbers and labels out."""
