"""A script on Flink: ours go to the catalogue, the others to Flink, with the calls of agents as async functions."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from reactflow.engines.flink import new_environment, register_agents, remove_option, shows_rows
from reactflow.engines.flink_errors import explained
from reactflow.engines.flink_settings import FlinkSettings
from reactflow.engines.flink_sql import (
    create_table,
    json_files,
    plain_file,
    ungrouped,
    with_connector,
    written_table,
)
from reactflow.engines.flink_state import JobFolder
from reactflow.engines.shared import last_word
from reactflow.specs.catalog import Catalog
from reactflow.sql.commands import carry_out, is_ours
from reactflow.sql.dialect import read_table
from reactflow.sql.session import Result
from reactflow.sql.tokens import Statement, split

_RECOVER: Final = "execution.state-recovery.path"


class FlinkSession:
    """Runs scripts on one TableEnvironment and one catalogue, from one thread at a time.

    Flink runs on this machine unless its options say where a cluster is: ``execution.target`` is ``remote``,
    ``rest.address`` its job manager.

    Args:
        settings: How.
        environment: Where ``${NAME}`` is looked up while agents are defined; the process's own by default.
    """

    def __init__(self, settings: FlinkSettings | None = None, *, environment: Mapping[str, str] | None = None) -> None:
        self.settings = settings or FlinkSettings()
        self.catalog = Catalog(
            overrides=self.settings.overrides, functions=self.settings.work.functions, environment=environment
        )
        self.tables = new_environment(self.settings.flink_options())
        self.agents = register_agents(self.tables, self.catalog, self.settings.work)
        self._last_words = Path()  # of the run that is under way

    def run(self, script: str) -> Iterator[Result]:
        """Run *script*, and yield what each statement gave.  One that reads is done when its rows have been read.

        Raises:
            SqlError: A statement is wrong; those before it have run, and those after it do not.
            WorkflowError: A job failed; with ``checkpoints`` the same script goes on where it was.
            JobStopped: The money was used up; likewise.
        """
        statements = [ungrouped(statement) for statement in split(script)]
        outputs = dict(self.settings.outputs)
        with JobFolder(self.settings.checkpoints, script, self.settings.tables) as folder:
            purse, self._last_words = folder.purse(self.settings.max_cost_usd), folder.new_place("last-words")
            self.agents.work = replace(self.settings.work, purse=purse, last_words=str(self._last_words))
            created = {table.bare for each in statements if each and (table := read_table(each)) is not None}
            for name in set(self.settings.tables) - created:
                path, columns = folder.read(name, self.settings.tables[name])
                self.tables.execute_sql(create_table(name, columns, json_files(str(path))))
            for number, statement in enumerate(statements, 1):
                if statement is not None:
                    yield self._run(statement, number, folder, outputs)
            for name, path in outputs.items():
                folder.write(name, path)

    def _run(self, statement: Statement, number: int, folder: JobFolder, outputs: dict[str, Path]) -> Result:
        if is_ours(statement):
            answer = carry_out(statement, self.catalog)
            return Result(statement, answer.columns, answer.rows, answer.message)
        if statement.words[0] == "SET" and len(statement.tokens) == 4:
            self.tables.get_config().set(statement.tokens[1].value, statement.tokens[3].value)
            return Result(statement, message=f"{statement.tokens[1].value} is set.")
        if statement.words[:2] == ("CREATE", "TABLE"):
            return self._create(statement, number, folder, outputs)
        if statement.words[0] == "INSERT":
            return self._insert(statement, number, folder)
        return self._execute(statement, self.agents.translate(statement, number))

    def _create(self, statement: Statement, number: int, folder: JobFolder, outputs: dict[str, Path]) -> Result:
        table = read_table(statement)
        name = table.bare if table is not None else statement.tokens[2].value
        path = self.settings.tables.get(name)
        own = None if table is None or path is not None else plain_file(table, self.settings.folder)
        if own is not None and not own.exists():
            outputs.setdefault(name, own)
        elif own is not None:
            path = own
        place = folder.read(name, path)[0] if path is not None else folder.table(name)
        text = with_connector(statement, json_files(str(place)), instead=own is not None)
        if path is not None and (text is None or table is None):
            words = f"Table {name!r} says itself where its rows are, so --table {name}=... cannot be read."
            raise statement.error(words)
        if table is None:
            folder.empty(name)
        folder.table(name).mkdir(parents=True, exist_ok=True)  # a table without rows can be read
        return self._execute(statement, self.agents.sql(text or statement.text, number))

    def _insert(self, statement: Statement, number: int, folder: JobFolder) -> Result:
        text, table = self.agents.translate(statement, number), written_table(statement)
        if folder.is_done(number, table):
            folder.mark_done(number)
            return Result(statement, message="Done by an earlier run.")
        config = self.tables.get_config().get_configuration()
        config.set_string("execution.checkpointing.dir", folder.checkpoints(number).as_uri())
        last = folder.begin(number, table)
        if last is not None:
            config.set_string(_RECOVER, last.as_uri())
        try:
            result = self._execute(statement, text, insert=True)
        finally:
            remove_option(self.tables, _RECOVER)
        folder.mark_done(number)
        return result

    def _execute(self, statement: Statement, text: str, *, insert: bool = False) -> Result:
        os.environ.update(self.agents.variables)  # for the workers of this process; a cluster has its own
        try:
            done = self.tables.execute_sql(text)
            shows = shows_rows(done) and not insert
            if done.get_job_client() is not None and not shows:
                done.wait()
        except Exception as error:  # a Java exception in one of several wrappers
            raise explained(error, statement, last_word(self._last_words)) from error
        if not shows:
            return Result(statement, message="Done.")
        return Result(
            statement, tuple(done.get_table_schema().get_field_names()), _Rows(done, statement, self._last_words)
        )


class _Rows(Iterable[tuple[Any, ...]]):
    """The rows of a query, as they come; of one whose rows change, those that are left in the end."""

    def __init__(self, done: Any, statement: Statement, last_words: Path) -> None:
        self._done = done
        self._statement = statement
        self._last_words = last_words

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = []
        try:
            with self._done.collect() as found:
                for row in found:
                    values = tuple(row)
                    if row.get_row_kind().name in ("INSERT", "UPDATE_AFTER"):
                        rows.append(values)
                    else:
                        rows.remove(values)
        except Exception as error:
            raise explained(error, self._statement, last_word(self._last_words)) from error
        return iter(rows)
