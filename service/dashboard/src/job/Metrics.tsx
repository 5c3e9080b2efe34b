import { t } from "@lingui/core/macro";
import { Plural, Trans } from "@lingui/react/macro";
import * as Slider from "@radix-ui/react-slider";
import { type ReactNode, useMemo, useState } from "react";

import { useAttempts } from "../api/jobs";
import { metricsOf, type MetricsSource, useDetail, useMetrics } from "../api/metrics";
import type { Attempt, Job, Series } from "../api/types";
import { Chart } from "../charts/Chart";
import type { ChartActions } from "../charts/ChartMenu";
import type { Flag } from "../charts/options";
import { acrossRanks, splice } from "../lib/buckets";
import { type ChartGroup, type ChartSection, groupSeries, sectionsOf } from "../lib/chartGroups";
import { type ChartChange, type ChartSettings, MAX_SMOOTHING, toggled } from "../lib/chartSettings";
import { fixed } from "../lib/format";
import { wordsOf } from "../lib/metricNames";
import { type Axis, firstTime, placeOfStep } from "../lib/series";
import { Notice } from "../ui/Notice";
import { Panel } from "../ui/Panel";
import { Segments } from "../ui/Segments";
import { useModal } from "../ui/useModal";
import { useDetailRange } from "./useDetailRange";

const AXES = [
  { key: "step", label: t`Steps` }, { key: "time", label: t`Time` }, { key: "wall", label: t`Wall` },
] as const;
type Shown = (typeof AXES)[number]["key"];
const SCALES = [
  { key: "linear", label: t`Linear` }, { key: "log", label: t({ message: "Log", context: "scale" }) },
] as const;
const RANKS = [{ key: "lines", label: t`Each rank` }, { key: "band", label: t`Band of ranks` }] as const;
/** Of more lines on one chart than this, the ranks of a metric become a band. */
const MOST_LINES = 8;
/** Pixels of a full screen that are not the chart's. */
const FULL_FRAME = 150;

interface ChartsProps {
  settings: ChartSettings;
  onChange: (change: ChartChange) => void;
}

interface Props extends ChartsProps {
  job: Job;
}

const NO_ATTEMPTS: readonly Attempt[] = [];

/** The charts of a job for whoever may read it. */
export function Metrics({ job, ...shown }: Props) {
  const attempts = useAttempts(job).data ?? NO_ATTEMPTS;
  return (
    <MetricCharts source={metricsOf(job)} attempts={attempts} {...shown}>
      <Trans>A script reports them with <code>torchyard.report(step=step, loss=loss)</code>.</Trans>
    </MetricCharts>
  );
}

interface MetricChartsProps extends ChartsProps {
  source: MetricsSource;
  attempts?: readonly Attempt[];
  /** What else is said where there are no metrics. */
  children?: ReactNode;
}

/** One chart for each group of metrics, growing while the job runs. */
export function MetricCharts({ source, attempts = NO_ATTEMPTS, settings, onChange, children }: MetricChartsProps) {
  const { series, origin, error, loaded, lost, flags } = useSeries(source, attempts, settings);
  const groups = useMemo(() => groupSeries(series), [series]);
  const sections = useMemo(() => sectionsOf(groups, settings.pin ?? []), [groups, settings.pin]);
  const full = groups.find(({ name }) => name === settings.full);
  const shared = { settings, onChange, origin, flags };
  return (
    <Panel
      title={t`Metrics`}
      tools={groups.length > 0 && <Tools groups={groups} settings={settings} onChange={onChange} />}
    >
      <Notice error={error} />
      <Lost lost={lost} />
      {loaded && groups.length === 0 && <NoMetrics over={source.over}>{children}</NoMetrics>}
      {sections.map((section) => (
        <Section key={section.title} section={section} alone={sections.length === 1}>
          {section.groups.map((group) => <GroupChart key={group.name} group={group} {...shared} />)}
        </Section>
      ))}
      {full !== undefined && (
        <FullScreen title={full.name} onClose={() => onChange({ full: undefined })}>
          <GroupChart group={full} {...shared} full />
        </FullScreen>
      )}
    </Panel>
  );
}

/** The series of a job, of a zoom its part more closely, and where attempts took over. */
function useSeries(
  source: MetricsSource, attempts: readonly Attempt[], { axis: chosen, zoom: range }: ChartSettings,
) {
  const shown: Shown = chosen ?? "step";
  const axis: Axis = shown === "step" ? "step" : "time";
  const zoom = useMemo(() => (range === undefined ? null : { start: range[0], end: range[1] }), [range]);
  const metrics = useMetrics(source, axis);
  const whole = metrics.data?.series;
  const origin = useMemo(() => firstTime(whole ?? []), [whole]);
  const detailRange = useDetailRange(zoom, shown === "time" ? origin : 0);
  const detail = useDetail(source, axis, detailRange, metrics.data?.generation ?? 0);
  const series = useMemo(() => (
    zoom !== null && whole && detail.data ? splice(whole, detail.data, axis) : whole ?? []
  ), [whole, detail.data, zoom, axis]);
  const flags = useMemo(
    () => resumes(attempts, series, axis, shown === "wall" ? origin : 0), [attempts, series, axis, shown, origin],
  );
  const lost = attempts.reduce((sum, attempt) => sum + attempt.dropped_records, 0);
  return { series, origin, flags, lost, error: metrics.error ?? detail.error, loaded: metrics.data !== undefined };
}

interface ToolsProps extends ChartsProps {
  groups: readonly ChartGroup[];
}

function Tools({ groups, settings, onChange }: ToolsProps) {
  const { scale = "linear", smooth = 0 } = settings;
  const axis: Shown = settings.axis ?? "step";
  const ranked = groups.filter(({ series }) => hasRanks(series));
  const ranks = settings.ranks ?? (ranked.some(({ series }) => series.length > MOST_LINES) ? "band" : "lines");
  return (
    <>
      <div className="smoothing">
        <span><Trans>Smoothing</Trans></span>
        <Slider.Root
          className="slider"
          value={[smooth]}
          max={MAX_SMOOTHING}
          step={0.01}
          onValueChange={([weight]) => onChange({ smooth: weight })}
        >
          <Slider.Track className="slider-track"><Slider.Range className="slider-range" /></Slider.Track>
          <Slider.Thumb className="slider-thumb" aria-label={t`Smoothing`} />
        </Slider.Root>
        <span className="num">{fixed(smooth, 2)}</span>
      </div>
      {ranked.length > 0 && (
        <Segments label={t`Ranks`} options={RANKS} value={ranks} onChange={(key) => onChange({ ranks: key })} />
      )}
      <Segments
        label={t`Axis`}
        options={AXES}
        value={axis}
        onChange={(key) => onChange({ axis: key === "step" ? undefined : key, zoom: undefined })}
      />
      <Segments
        label={t`Scale`}
        options={SCALES}
        value={scale}
        onChange={(key) => onChange({ scale: key === "linear" ? undefined : key })}
      />
    </>
  );
}

function hasRanks(series: readonly Series[]): boolean {
  return new Set(series.map((one) => one.name)).size < series.length;
}

/** Charts under a heading that opens and closes; what is closed is not drawn. */
function Section({ section, alone, children }: { section: ChartSection; alone: boolean; children: ReactNode }) {
  const [open, setOpen] = useState(!section.folded);
  if (alone) return <div className="charts">{children}</div>;
  return (
    <details className="chart-section" open={open} onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary><h3>{section.title}</h3> <span className="faint">{section.groups.length}</span></summary>
      {open && <div className="charts">{children}</div>}
    </details>
  );
}

interface GroupProps extends ChartsProps {
  group: ChartGroup;
  origin: number;
  flags: readonly Flag[];
  full?: boolean;
}

function GroupChart({ group, settings, onChange, origin, flags, full = false }: GroupProps) {
  const { ranks, zoom, hide } = settings;
  const axis: Shown = settings.axis ?? "step";
  const banded = ranks === undefined ? group.series.length > MOST_LINES : ranks === "band";
  const series = useMemo(() => (banded ? acrossRanks(group.series) : group.series), [banded, group.series]);
  const words = useMemo(() => wordsOf(group.series[0]?.name ?? ""), [group.series]);
  const actions = actionsOf(group.name, settings, onChange);
  return (
    <Chart
      title={group.name}
      series={series}
      axis={axis === "step" ? "step" : "time"}
      clock={axis === "wall"}
      logarithmic={settings.scale === "log"}
      smoothing={settings.smooth ?? 0}
      flags={flags}
      origin={origin}
      sync={`metrics-${axis}`}
      zoom={zoom === undefined ? null : { start: zoom[0], end: zoom[1] }}
      onZoom={(next) => onChange({ zoom: next === null ? undefined : [next.start, next.end] })}
      range={actions.range}
      {...(hide && { hidden: hide })}
      onToggle={(label) => onChange({ hide: toggled(hide, label) })}
      {...(words && { words })}
      {...(full ? { height: Math.max(240, window.innerHeight - FULL_FRAME) } : { actions })}
    />
  );
}

function actionsOf(name: string, { pin, y }: ChartSettings, onChange: ChartsProps["onChange"]): ChartActions {
  const others = Object.entries(y ?? {}).filter(([chart]) => chart !== name);
  return {
    pinned: pin?.includes(name) ?? false,
    range: y?.[name] ?? null,
    onPin: () => onChange({ pin: toggled(pin, name) }),
    onFull: () => onChange({ full: name }),
    onRange: (next) => onChange({ y: Object.fromEntries(next === null ? others : [...others, [name, next]]) }),
  };
}

function FullScreen({ title, onClose, children }: { title: string; onClose: () => void; children: ReactNode }) {
  const { ref, props } = useModal(onClose, true);
  return (
    <dialog {...props} className="full-chart" aria-label={t`Chart of ${title}`}>
      <button type="button" className="button small" onClick={() => ref.current?.close()}><Trans>Close</Trans></button>
      {children}
    </dialog>
  );
}

/** How many records have no point. */
function Lost({ lost }: { lost: number }) {
  if (lost === 0) return null;
  return (
    <p className="warned" role="status">
      <Plural
        value={lost}
        one="# record of metrics lost, mostly because the disk was full: points are missing from the curves."
        other="# records of metrics lost, mostly because the disk was full: points are missing from the curves."
      />
    </p>
  );
}

function NoMetrics({ over, children }: { over: boolean; children: ReactNode }) {
  return <p className="soft pad">{over ? t`This job reported no metrics.` : t`No metrics yet.`} {children}</p>;
}

/** Where later attempts took over from a checkpoint. */
function resumes(attempts: readonly Attempt[], series: readonly Series[], axis: Axis, shift: number): Flag[] {
  return attempts.flatMap((attempt) => {
    if (attempt.resumed_from_step === null) return [];
    const x = placeOfStep(series, attempt.resumed_from_step, axis);
    return x === null ? [] : [{ x: x + shift, label: t`attempt ${{ attempt: attempt.number }}` }];
  });
}
