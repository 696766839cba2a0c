"""One rehearsal of the stack dws-multikueue, which the files of this folder share."""
