"""What a run says about the papers: checks of their theorems, verdicts on their claims, and the words for both."""
