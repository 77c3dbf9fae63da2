"""The code of the backend shm on one thread, where a scheduler decides which process goes on."""
