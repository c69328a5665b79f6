// The page with the reports.

import m from 'mithril';
import type {Database} from '../logic/database';
import {addUp, type Part} from '../logic/phases';
import {cell, type Report, reports} from '../logic/reports';
import {num, type Row, text} from '../logic/rows';
import type {Trace} from '../perfetto';
import {legend, link, shareBar, table} from './parts';

const ROUTE = '/syncline';
const FIRST = 'summary';
// More rows would make the page slow. The query page shows all.
const MOST_ROWS = 1000;

export function addPage(trace: Trace, db: Database): void {
  const page = new ReportPage(trace, db);
  trace.pages.registerPage({route: ROUTE, render: () => page.render()});
  trace.sidebar.addMenuItem({section: 'current_trace', text: 'Syncline reports', href: `#!${ROUTE}`, icon: 'summarize', sortOrder: 15});
}

class ReportPage {
  private readonly all = reports();
  private chosen: Report | undefined;
  private rows: Row[] | undefined;
  private phases: readonly Part[] | undefined;
  private error: string | undefined;

  constructor(
    private readonly trace: Trace,
    private readonly db: Database,
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
    if (rows.length === 0) return m('p', `No rows. Why: syncline report TRACE ${report.name}`);
    return [
      table(columns, rows.slice(0, MOST_ROWS).map((row) => columns.map((column) => cell(report, row, column)))),
      rows.length > MOST_ROWS && m('p', `${rows.length - MOST_ROWS} more rows: syncline report ${report.name}`),
    ];
  }

  private choose(report: Report): void {
    this.chosen = report;
    this.rows = undefined;
    this.error = undefined;
    void this.read(report);
  }

  private async read(report: Report): Promise<void> {
    try {
      this.phases ??= addUp((await this.db.query('all-phases')).map((row) => ({name: text(row['phase'])!, ns: num(row['time_ns'])!})));
      const rows = await this.db.run(report.sql);
      if (report === this.chosen) this.rows = rows;
    } catch (error) {
      if (report === this.chosen) this.error = `The report cannot run: ${error}`;
    }
    this.trace.raf.scheduleFullRedraw();
  }
}
