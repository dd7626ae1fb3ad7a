"""What the hub's database keeps: one file of tables for each service, on the one `Base` of `database.py`.

They stand here and not in the services, since what one service writes others read; a service imports the tables of another from
here, and what it *does* from its package. What may not live here: anything that does something.
"""
