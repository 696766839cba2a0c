// Draws a dashboard with Grafana's own components, as Grafana would. What it asks for and is not known here fails.
//
// The components come from npm; no registry of packages has Grafana itself. They have no heatmap, which is painted here,
// on Grafana's axes. Colours follow what the browser prefers.

import {
  createTheme,
  dateTime,
  type DataFrame,
  type Field,
  FieldColorModeId,
  FieldType,
  getDisplayProcessor,
  type GrafanaTheme2,
  ThemeContext,
  toDataFrame,
} from '@grafana/data';
import {
  AxisPlacement,
  GlobalStyles,
  PanelChrome,
  ScaleDirection,
  ScaleOrientation,
  Tag,
  TimeSeries,
  UPlotChart,
  UPlotConfigBuilder,
} from '@grafana/ui';
import { interpolateOranges } from 'd3-scale-chromatic';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';

type Json = Record<string, any>;
interface Series {
  metric: Record<string, string>;
  values: [number, string][];
}
declare global {
  interface Window {
    /** The dashboard; the answers to its queries, by expression; its filters; the range of time in seconds and its step. */
    shown: { board: Json; answers: Record<string, Series[]>; filters: string; from: number; to: number; step: number };
  }
}
const { board, answers, filters, from, to, step } = window.shown;
const dark = matchMedia('(prefers-color-scheme: dark)').matches;
const RANGE = { from: dateTime(from * 1000), to: dateTime(to * 1000), raw: { from: 'now-6h', to: 'now' } };
const ROW = 30, GAP = 8, NARROW = 769;
/** What Grafana gives each line where the dashboard says nothing. */
const LINE = {
  axisBorderShow: false, axisCenteredZero: false, axisColorMode: 'text', axisPlacement: 'auto', drawStyle: 'line',
  fillOpacity: 0, gradientMode: 'none', lineInterpolation: 'linear', lineWidth: 1, pointSize: 5,
  scaleDistribution: { type: 'linear' }, showPoints: 'auto', spanNulls: false, stacking: { group: 'A', mode: 'none' },
};

/** Other keys are not known. */
function known(where: string, given: Json, ...keys: string[]): Json {
  const other = Object.keys(given).filter((key) => !keys.includes(key));
  if (other.length) {
    throw new Error(`${where}: the page that draws dashboards does not know ${other.join(', ')}`);
  }
  return given;
}

function one<T>(where: string, given: T, ...values: T[]): T {
  if (!values.includes(given)) {
    throw new Error(`${where}: the page that draws dashboards does not know ${JSON.stringify(given)}`);
  }
  return given;
}

/** The name of a series, as Prometheus' data source of Grafana makes it. */
function legend(format: string | undefined, labels: Record<string, string>): string {
  return format
    ? format.replace(/\{\{\s*(.+?)\s*\}\}/g, (_, label) => labels[label] ?? '')
    : `{${Object.entries(labels).map(([name, text]) => `${name}="${text}"`).join(', ')}}`;
}

function frames(panel: Json, theme: GrafanaTheme2): DataFrame[] {
  const where = panel.title;
  const { defaults, overrides } = known(where, panel.fieldConfig, 'defaults', 'overrides');
  one(where, overrides.length, 0);
  const { custom, ...config } = known(where, defaults, 'unit', 'min', 'max', 'decimals', 'custom', 'color');
  known(where, custom ?? {}, ...Object.keys(LINE));
  let seriesIndex = 0;
  return panel.targets.flatMap((target: Json) => {
    const { expr, refId, legendFormat } = known(where, target, 'refId', 'datasource', 'expr', 'legendFormat');
    return answers[expr].map(({ metric, values }) => {
      const frame = toDataFrame({
        refId,
        fields: [
          { name: 'Time', type: FieldType.time, values: values.map(([at]) => at * 1000), config: { interval: step * 1000 } },
          {
            name: 'Value',
            type: FieldType.number,
            labels: metric,
            // As Grafana's panel does: what is no number is a gap.
            values: values.map(([, value]) => (Number.isFinite(Number(value)) ? Number(value) : null)),
            config: {
              color: { mode: FieldColorModeId.PaletteClassic },
              ...config,
              displayNameFromDS: legend(legendFormat, metric),
              custom: { ...LINE, ...custom },
            },
          },
        ],
      });
      for (const field of frame.fields) {
        field.state = { seriesIndex };
        field.display = getDisplayProcessor({ field, theme, timeZone: 'utc' });
      }
      seriesIndex += 1;
      return frame;
    });
  });
}

interface Drawn {
  panel: Json;
  data: DataFrame[];
  width: number;
  height: number;
  theme: GrafanaTheme2;
}

function Lines({ panel, data, width, height }: Drawn) {
  const { legend, tooltip } = known(panel.title, panel.options, 'legend', 'tooltip');
  known(panel.title, tooltip, 'mode', 'sort'); // of a pointer, of which a picture has none
  known(panel.title, legend, 'showLegend', 'displayMode', 'placement', 'calcs', 'sortBy', 'sortDesc');
  return <TimeSeries frames={data} timeRange={RANGE as any} timeZone="utc" width={width} height={height} legend={legend} options={panel.options} />;
}

/** Each query is a row, the first the lowest. */
function Heatmap({ panel, data, width, height, theme }: Drawn) {
  const options = known(panel.title, panel.options, 'calculate', 'cellGap', 'color', 'rowsFrame', 'yAxis', 'legend', 'tooltip');
  const color = known(panel.title, options.color, 'mode', 'scheme', 'steps', 'reverse', 'exponent', 'fill');
  one(panel.title, options.calculate, false);
  one(panel.title, color.mode, 'scheme');
  one(panel.title, color.scheme, 'Oranges');
  one(panel.title, options.rowsFrame.layout, 'auto');
  one(panel.title, options.yAxis.reverse, false);
  const rows: Field[] = data.map((frame) => frame.fields[1]);
  const times = data[0].fields[0].values as number[];
  const most = Math.max(...rows.flatMap((row) => row.values));
  const colour = (value: number) => {
    const share = Math.round((value / most) ** color.exponent * color.steps) / color.steps;
    return interpolateOranges(dark === color.reverse ? share : 1 - share);
  };
  const builder = new UPlotConfigBuilder('utc');
  builder.addScale({
    scaleKey: 'x', isTime: true, orientation: ScaleOrientation.Horizontal, direction: ScaleDirection.Right,
    range: () => [from * 1000, to * 1000],
  });
  builder.addScale({
    scaleKey: 'y', isTime: false, orientation: ScaleOrientation.Vertical, direction: ScaleDirection.Up,
    range: () => [0, rows.length],
  });
  builder.addAxis({ scaleKey: 'x', isTime: true, placement: AxisPlacement.Bottom, theme, timeZone: 'utc', grid: { show: false } });
  builder.addAxis({
    scaleKey: 'y', placement: options.yAxis.axisPlacement, theme, grid: { show: false }, size: 90,
    splits: () => rows.map((_, index) => index + 0.5),
    values: () => rows.map((row) => row.config.displayNameFromDS!),
  });
  builder.addSeries({ scaleKey: 'y', theme, pathBuilder: () => null, show: true } as any);
  builder.addHook('draw', (plot) => {
    plot.ctx.save();
    const gap = options.cellGap * devicePixelRatio;
    rows.forEach((row, index) => {
      const [bottom, top] = [plot.valToPos(index, 'y', true), plot.valToPos(index + 1, 'y', true)];
      row.values.forEach((value, at) => {
        const [left, right] = [times[at], times[at] + step * 1000].map((time) => Math.round(plot.valToPos(time, 'x', true)));
        if (value > 0) {
          plot.ctx.fillStyle = colour(value);
          plot.ctx.fillRect(left, top, Math.max(1, right - left - gap), bottom - top - gap);
        }
      });
    });
    plot.ctx.restore();
  });
  const scale = [0, 0.25, 0.5, 0.75, 1].map((share) => Math.round(share * most));
  return (
    <>
      <UPlotChart data={[times, rows[0].values] as any} config={builder} width={width} height={height - 24} />
      {options.legend.show && (
        <div style={{ display: 'flex', gap: 12, fontSize: 12, justifyContent: 'center' }}>
          {[...new Set(scale)].map((value) => (
            <span key={value}><i style={{ background: colour(value), display: 'inline-block', width: 12, height: 12 }} /> {rows[0].display!(value).text}</span>
          ))}
        </div>
      )}
    </>
  );
}

const KINDS: Record<string, (drawn: Drawn) => React.ReactNode> = { timeseries: Lines, heatmap: Heatmap };

function Panel({ panel, theme, place }: { panel: Json; theme: GrafanaTheme2; place: { width: number; height: number; left: number; top: number } }) {
  const style = { position: 'absolute', ...place } as const;
  if (panel.type === 'row') {
    known(panel.title, panel, 'id', 'type', 'title', 'collapsed', 'gridPos', 'panels');
    one(panel.title, panel.collapsed, false);
    return <h5 style={{ ...style, margin: 0, lineHeight: `${place.height}px` }}>⌄ {panel.title}</h5>;
  }
  known(panel.title, panel, 'id', 'type', 'title', 'description', 'datasource', 'gridPos', 'fieldConfig', 'options', 'targets');
  const Kind = KINDS[one(panel.title, panel.type, ...Object.keys(KINDS))];
  const data = frames(panel, theme);
  return (
    <section style={style} data-panel={panel.title}>
      <PanelChrome title={panel.title} description={panel.description} width={place.width} height={place.height}>
        {(width, height) => (data.length ? <Kind {...{ panel, data, width, height, theme }} /> : <p data-empty style={{ paddingTop: height / 2 - 10, textAlign: 'center', width }}>No data</p>)}
      </PanelChrome>
    </section>
  );
}

function Dashboard() {
  known('the dashboard', board, 'uid', 'title', 'tags', 'schemaVersion', 'editable', 'refresh', 'time', 'templating', 'panels');
  const theme = createTheme({ colors: { mode: dark ? 'dark' : 'light' } });
  const whole = document.documentElement.clientWidth - 2 * GAP, narrow = window.innerWidth < NARROW;
  let below = 0;
  const places = board.panels.map(({ gridPos: { x, y, w, h } }: Json) => {
    const height = h * (ROW + GAP) - GAP, column = (whole + GAP) / 24;
    if (!narrow) {
      return { left: x * column, top: y * (ROW + GAP), width: w * column - GAP, height };
    }
    const top = below;
    below += height + GAP;
    return { left: 0, top, width: whole, height };
  });
  const last = places[places.length - 1];
  return (
    <ThemeContext.Provider value={theme}>
      <GlobalStyles />
      <main style={{ padding: GAP, background: theme.colors.background.canvas }}>
        <h4>{board.title}</h4>
        <p style={{ display: 'flex', gap: GAP }}>
          {board.templating.list.map(({ name, type, label }: Json) => (
            <Tag key={name} colorIndex={9} name={`${label}: ${one(label, type, 'datasource', 'adhoc') === 'adhoc' ? filters : 'Prometheus'}`} />
          ))}
        </p>
        <div style={{ position: 'relative', height: last.top + last.height }}>
          {board.panels.map((panel: Json, index: number) => <Panel key={panel.id} panel={panel} theme={theme} place={places[index]} />)}
        </div>
      </main>
    </ThemeContext.Provider>
  );
}

createRoot(document.getElementById('root')!).render(<StrictMode><Dashboard /></StrictMode>);
