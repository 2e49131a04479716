"""What is true of a function in SSA form: questions whose answers change nothing."""
