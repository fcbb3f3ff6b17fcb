"""What users write: repro files, questions, requirements, days."""
