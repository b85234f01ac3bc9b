"""`rwq top`: only `app.py`, `screens.py` and `widgets.py` import Textual."""
