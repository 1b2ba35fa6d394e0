"""The only code that patches or hooks a framework. It tells subscribers what a script does."""
