"""What Alembic runs around the steps: on the connection that it is given, in one transaction."""

from alembic import context

from cloister.hub.database import Base, every_model


def run() -> None:
    """Run the steps that are wanted."""
    every_model()
    context.configure(
        connection=context.config.attributes["connection"], target_metadata=Base.metadata, render_as_batch=True, compare_type=True
    )
    with context.begin_transaction():
        context.run_migrations()


if hasattr(context, "config"):  # Alembic reads this file while it works; whoever else imports it wants nothing run
    run()
