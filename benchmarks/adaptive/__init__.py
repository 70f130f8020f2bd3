"""hushcube beside data-adaptive rivals, AIM and MST, at equal privacy: errors at face value, time and memory."""
