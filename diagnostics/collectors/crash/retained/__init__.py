"""What variables in the frames of a crash keep in memory: graphs of many batches, models of earlier trainings."""
