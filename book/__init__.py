"""The book: its pages, its builder (`python book/build.py`), and the panels that its notebooks show."""
