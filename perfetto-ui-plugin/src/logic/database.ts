// Syncline's tables and queries on the trace that the UI has loaded.

import {OWN_TABLES, QUERIES, TABLES} from '../generated/sql';
import type {Engine} from '../perfetto';
import {rows, type Row} from './rows';

export type Parameters = Readonly<Record<string, string | number | bigint | null | ReadonlyArray<number>>>;

const INCLUDE = /^INCLUDE PERFETTO MODULE dev\.syncline\.(\w+);\n/gm;

/** Returns the modules that SQL needs, each after those that it includes itself. */
export function modulesOf(sql: string): string[] {
  const found: string[] = [];
  const add = (name: string) => {
    const text = TABLES[name];
    if (text === undefined || found.includes(name)) return;
    for (const [, needed] of text.matchAll(INCLUDE)) add(needed!);
    if (!found.includes(name)) found.push(name);
  };
  for (const [, name] of sql.matchAll(/\bsyncline_([a-z_]+)\b/g)) add(name!);
  return found;
}

/** Puts values into SQL for its `$NAME`. */
export function withParameters(sql: string, parameters: Parameters): string {
  return sql.replace(/\$([a-z_]+)/g, (_, name: string) => {
    const value = parameters[name];
    if (value === undefined) throw new Error(`no value for $${name}`);
    return literal(value);
  });
}

function literal(value: Parameters[string]): string {
  if (value === null) return 'NULL';
  if (typeof value === 'string') return `'${value.replaceAll("'", "''")}'`;
  if (typeof value === 'object') return value.map(literal).join(', ') || 'NULL';
  return String(value);
}

/** The tables of one trace. Each is built when it is first needed. */
export class Database {
  private readonly built = new Map<string, Promise<unknown>>();
  // The build that was begun last. The next one waits for it, because a query must not run between statements that build what it reads.
  private last: Promise<unknown> = Promise.resolve();

  /** `hasModules`: the engine has the modules of the tables, so that including one builds it. Without them, this class runs their SQL. */
  constructor(
    private readonly engine: Engine,
    private readonly hasModules = false,
  ) {}

  /** Runs a file of sql/views/plugin/. */
  query(name: string, parameters: Parameters = {}): Promise<Row[]> {
    return this.run(withParameters(QUERIES[name]!, parameters));
  }

  /** Runs SQL on Syncline's tables. */
  async run(sql: string): Promise<Row[]> {
    await this.build(sql);
    return rows(this.engine, sql);
  }

  /** Builds a table of sql/views/plugin/tables/ again, with other parameters. */
  async rebuild(name: string, parameters: Parameters): Promise<void> {
    const sql = withParameters(OWN_TABLES[name]!, parameters);
    await this.build(sql);
    await this.engine.query(sql);
    this.built.set(`own ${name}`, Promise.resolve());
  }

  private async build(sql: string): Promise<void> {
    for (const name of modulesOf(sql)) {
      const sql = this.hasModules ? `INCLUDE PERFETTO MODULE dev.syncline.${name};` : TABLES[name]!.replace(INCLUDE, '');
      await this.once(name, () => this.engine.query(sql));
    }
    if (sql.includes('_syncline_plugin_slice')) {
      await this.once('own slices', () => this.engine.query(OWN_TABLES['slices']!));
    }
  }

  private once(name: string, make: () => Promise<unknown>): Promise<unknown> {
    let made = this.built.get(name);
    if (made === undefined) {
      made = this.last = this.last.catch(() => undefined).then(make);
      this.built.set(name, made);
    }
    return made;
  }
}
