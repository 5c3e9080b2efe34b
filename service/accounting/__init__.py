"""GPU time: entitlements, quotas, charges, reports."""
