"""Run the command line with `python -m seedance_obs`."""

from seedance_obs.cli import main

if __name__ == "__main__":
    main()
