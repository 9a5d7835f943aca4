"""Run the service in gunicorn. No other package imports gunicorn or gevent."""
