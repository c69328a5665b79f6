// The parts of Perfetto's UI that the plugin uses. check/ compares them with the sources of releases.
//
// Functions are properties, so that the compiler compares their parameters strictly.

import type m from 'mithril';

// Perfetto marks a time with a type of its own.
export type Time = bigint & {__type: 'time'};

export type Value = string | number | bigint | Uint8Array | null;

export interface QueryResult {
  readonly columns: () => string[];
  readonly iter: (spec: {}) => {valid: () => boolean; next: () => void; get: (column: string) => Value};
}

export interface Engine {
  readonly query: (sql: string) => Promise<QueryResult>;
}

export interface TrackEventSelection {
  readonly kind: 'track_event';
  readonly trackUri: string;
  readonly eventId: number;
  readonly ts: Time;
}

export interface AreaSelection {
  readonly kind: 'area';
  readonly start: Time;
  readonly end: Time;
  readonly tracks: ReadonlyArray<{readonly uri: string; readonly tags?: TrackTags}>;
}

export interface TrackTags {
  readonly trackIds?: ReadonlyArray<number>;
}

export interface DetailsPanel {
  load?(selection: TrackEventSelection): Promise<void>;
  render(): m.Children;
}

export interface Track {
  readonly uri: string;
  readonly tags?: TrackTags;
  readonly renderer: {
    detailsPanel?: (selection: TrackEventSelection) => DetailsPanel | undefined;
  };
}

export interface AreaTab {
  readonly id: string;
  readonly name: string;
  readonly priority?: number;
  render(selection: AreaSelection): {readonly isLoading: boolean; readonly content: m.Children} | undefined;
}

export interface Command {
  id: string;
  name: string;
  callback: () => unknown;
  defaultHotkey?: 'J' | 'K';
}

export interface TimeScale {
  readonly pxToHpTime: (px: number) => {readonly integral: bigint; readonly fractional: number};
}

export interface RenderContext {
  readonly ctx: CanvasRenderingContext2D;
  readonly size: {readonly width: number; readonly height: number};
  readonly timescale: TimeScale;
}

export interface Renderer {
  readonly render: (context: RenderContext) => void;
  readonly getHeight: () => number;
  readonly onMouseMove?: (event: {x: number; y: number; timescale: TimeScale}) => void;
  readonly onMouseOut?: () => void;
  readonly onMouseClick?: (event: {x: number; y: number; timescale: TimeScale}) => boolean;
  readonly renderTooltip?: () => m.Children;
}

export interface TrackNode {
  readonly name: string;
  readonly uri?: string;
  readonly addChildLast: (child: never) => unknown;
}

export interface Workspace {
  readonly flatTracks: readonly TrackNode[];
  readonly addChildFirst: (child: never) => unknown;
  readonly addChildLast: (child: never) => unknown;
  readonly pinTrack: (track: never) => unknown;
}

export interface Tab {
  render(): m.Children;
  getTitle(): string;
}

export interface Trace {
  // The workspace has the first name up to v55, and the second one since.
  readonly workspace?: Workspace;
  readonly currentWorkspace?: Workspace;
  readonly engine: Engine;
  readonly commands: {readonly registerCommand: (command: Command) => unknown};
  readonly raf: {readonly scheduleFullRedraw: () => void};
  readonly tracks: {
    readonly getAllTracks: () => Track[];
    readonly registerTrack: (track: {uri: string; renderer: Renderer}) => unknown;
  };
  readonly selection: {
    readonly selection: {readonly kind: string};
    readonly selectSqlEvent: (table: string, id: number, options?: {scrollToSelection?: boolean; switchToCurrentSelectionTab?: boolean}) => void;
    readonly registerAreaSelectionTab: (tab: AreaTab) => void;
  };
  readonly pages: {
    readonly registerPage: (page: {route: string; render: (subpage: string | undefined) => m.Children}) => unknown;
  };
  readonly sidebar: {
    readonly addMenuItem: (item: {
      section: 'current_trace';
      text: string;
      href: string;
      icon: string;
      sortOrder: number;
    }) => unknown;
  };
  readonly tabs: {
    readonly registerTab: (tab: {uri: string; content: Tab}) => unknown;
    readonly addDefaultTab: (uri: string) => unknown;
    readonly showTab: (uri: string) => unknown;
  };
  readonly scrollTo: (to: {
    track?: {uri: string; expandGroup: boolean};
    time?: {start: Time; end: Time; viewPercentage: number; behavior: {viewPercentage: number}};
  }) => void;
  readonly onTraceReady: {readonly addListener: (listener: () => Promise<void>) => unknown};
}
