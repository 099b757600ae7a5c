"""Problems whose constants are known."""
