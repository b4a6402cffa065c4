"""Extensions of Sphinx that only this documentation needs."""
