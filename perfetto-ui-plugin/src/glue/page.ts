// The page with the reports.

import m from 'mithril';
import type {Database} from '../logic/database';
import {addUp, type Part} from '../logic/phases';
import {cell, heading, type Report, reports, sorted} from '../logic/reports';
import {num, type Row, text} from '../logic/rows';
import type {Trace} from '../perfetto';
import type {Focus} from './focus';
import {legend, link, shareBar, table} from './parts';

const ROUTE = '/syncline';
const FIRST = 'summary';
// More rows would make the page slow. The query page shows all.
const MOST_ROWS = 1000;

/** Adds the page. `server` is the folder of the trace on the server of `syncline open`; null in another UI. */
export function addPage(trace: Trace, db: Database, focus: Focus, server: string | null): void {
  const page = new ReportPage(trace, db, focus, server);
  trace.pages.registerPage({route: ROUTE, render: () => page.render()});
  trace.commands.registerCommand({id: 'dev.syncline.Sync#Reports', name: 'Syncline: reports', callback: () => { window.location.hash = `#!${ROUTE}`; }});
  trace.sidebar.addMenuItem({section: 'current_trace', text: 'Syncline reports', href: `#!${ROUTE}`, icon: 'summarize', sortOrder: 15});
}

class ReportPage {
  private readonly all = reports();
  private chosen: Report | undefined;
  private rows: Row[] | undefined;
  private phases: readonly Part[] | undefined;
  /** Why there are no rows, if the server says it. */
  private why: string | undefined;
  private error: string | undefined;
  /** The column by which the rows are sorted; null as long as they are in the order of the report. */
  private order: string | null = null;

  constructor(
    private readonly trace: Trace,
    private readonly db: Database,
    private readonly focus: Focus,
    private readonly server: string | null,
  ) {}

  render(): m.Children {
    if (this.chosen === undefined) this.choose(this.all.find(({name}) => name === FIRST) ?? this.all[0]!);
    return m('.syncline.syncline-page', {style: {overflow: 'auto', height: '100%', boxSizing: 'border-box'}}, [
      this.phases && this.phases.length > 0 && [m('h2', 'Where the time of all syncs went'), shareBar(this.phases), legend(this.phases)],
      m('p', this.all.map((report) => [report === this.chosen ? m('b', report.name) : link(report.name, () => this.choose(report)), ' '])),
      m('h1', this.chosen?.title),
      this.error ? m('p', this.error) : this.rows === undefined ? m('p', 'reading the syncs ...') : this.result(this.chosen!, this.rows),
    ]);
  }

  private result(report: Report, rows: readonly Row[]): m.Children {
    const columns = Object.keys(rows[0] ?? {}).filter((name) => name !== 'run' && name !== 'unit' && name !== 'depth');
    if (rows.length === 0) return m('p.syncline-none', this.why ? `No rows: ${this.why}` : `No rows. Why: syncline report TRACE ${report.name}`);
    return [
      table(columns.map((column) => this.head(report, column)), sorted(rows, this.order).slice(0, MOST_ROWS).map((row) => columns.map((column) => this.cell(report, row, column)))),
      rows.length > MOST_ROWS && m('p', `${rows.length - MOST_ROWS} more rows: syncline report ${report.name}`),
    ];
  }

  private head(report: Report, column: string): m.Children {
    const title = report.columns.find(({name}) => name === column)?.text ?? column;
    return m('span', {title: `${title} (${column})`}, [link(heading(column), () => { this.order = this.order === column ? null : column; }), this.order === column ? ' ↓' : '']);
  }

  private cell(report: Report, row: Row, column: string): m.Children {
    const shown = cell(report, row, column);
    const id = num(row['sync_id']);
    return column === 'sync_id' && id !== null ? link(shown, () => void this.go(id)) : shown;
  }

  // Back to the timeline, at a sync.
  private async go(syncId: number): Promise<void> {
    const row = (await this.db.query('sync', {sync_id: syncId}))[0];
    const sliceId = num(row?.['slice_id']);
    if (row === undefined || sliceId === null) return;
    window.location.hash = '#!/viewer';
    this.focus.go({sliceId, ts: BigInt(row['ts_ns'] as bigint), ns: num(row['dur_ns']) ?? 0});
  }

  private choose(report: Report): void {
    this.order = null;
    this.chosen = report;
    this.rows = undefined;
    this.why = undefined;
    this.error = undefined;
    void this.read(report);
  }

  private async read(report: Report): Promise<void> {
    try {
      this.phases ??= addUp((await this.db.query('all-phases')).map((row) => ({name: text(row['phase'])!, ns: num(row['time_ns'])!})));
      const rows = await this.db.run(report.sql);
      const why = rows.length === 0 ? await this.reason(report) : undefined;
      if (report === this.chosen) [this.rows, this.why] = [rows, why];
    } catch (error) {
      if (report === this.chosen) this.error = `The report cannot run: ${error}`;
    }
    this.trace.raf.scheduleFullRedraw();
  }

  // The rule is that of `syncline report`, which runs on the server.
  private async reason(report: Report): Promise<string | undefined> {
    if (this.server === null) return undefined;
    const answer = await fetch(`${this.server}why/${report.name}`).catch(() => null);
    return answer?.ok ? answer.text() : undefined;
  }
}
