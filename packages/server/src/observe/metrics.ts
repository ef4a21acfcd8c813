import { monitorEventLoopDelay } from 'node:perf_hooks'
import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import type { LiveSession } from '../live/live-session.ts'
import type { LiveSessions } from '../live/live-sessions.ts'
import { modelCallOf, modelInUse } from './model-call.ts'

/** The route of the metrics. They contain no content, but count the activity of all tenants. */
export const metricsRoute = { method: 'get', path: '/metrics', access: 'metrics' } as const

export interface FinishedRequest {
  method: string
  /** The pattern of the route, never the path: a label per session would be too many. */
  route: string
  status: number
  seconds: number
}

/** The server's metrics for Prometheus. One instance per server; nothing is registered globally. */
export class Metrics {
  readonly contentType: string
  readonly #registry = new Registry()
  readonly #loopDelay = monitorEventLoopDelay({ resolution: 10 })
  readonly #lines = this.#counter('lines_total', 'Lines that became durable, by type.', ['type'])
  readonly #deltas = this.#counter('deltas_total', 'Pieces of streamed text, by kind.', ['kind'])
  readonly #deltaKinds = new Map<string, Counter.Internal>()
  readonly #commands = this.#counter('commands_total', 'Commands, by operation and outcome.', ['op', 'outcome'])
  readonly #storageFailures = this.#counter('storage_failures_total', 'Commands that failed because of the storage.', [
    'type',
  ])
  readonly #modelCalls = this.#counter('model_calls_total', 'Model calls.', ['provider', 'model', 'outcome'])
  readonly #tokens = this.#counter('model_tokens_total', 'Tokens used.', ['provider', 'model', 'type'])
  readonly #cost = this.#counter('model_cost_dollars_total', 'Cost of model calls, in US dollars.', [
    'provider',
    'model',
  ])
  readonly #requests = new Histogram({
    name: 'tapetree_http_request_duration_seconds',
    help: 'Time until the response to a request began.',
    labelNames: ['method', 'route', 'status'],
    registers: [this.#registry],
    buckets: [0.005, 0.02, 0.1, 0.5, 2, 10],
  })

  constructor(tenants: ReadonlyMap<string, LiveSessions>) {
    this.contentType = this.#registry.contentType
    const all = (): LiveSession[] => [...tenants.values()].flatMap((sessions) => sessions.opened)
    this.#gauge('sessions_live', 'Live sessions.', () => all().length)
    this.#gauge(
      'sessions_busy',
      'Live sessions with a running agent.',
      () => all().filter(({ driver }) => driver.isBusy).length,
    )
    this.#gauge('connections', 'Connections to live sessions.', () =>
      all().reduce((sum, { connections }) => sum + connections.size, 0),
    )
    this.#gauge(
      'sessions_storage_failed',
      'Live sessions whose last write failed.',
      () => all().filter(({ session }) => session.storageFailure !== undefined).length,
    )
    this.#gauge('process_resident_bytes', 'Memory of the process.', () => process.memoryUsage.rss())
    this.#gauge('process_cpu_seconds', 'CPU time of the process.', () => {
      const { user, system } = process.cpuUsage()
      return (user + system) / 1e6
    })
    this.#gaugeLoopDelay()
    this.#loopDelay.enable()
  }

  /** Counts the events of a live session. Use it as one of the `observers` of live sessions. */
  readonly observe = (live: LiveSession): (() => void) => {
    const stops = [
      live.session.subscribe(({ line }) => {
        this.#lines.inc({ type: line.type })
        const call = modelCallOf(line, () => modelInUse(live.driver.config()))
        if (!call) return
        const { provider, model, outcome, tokens, cost } = call
        if (outcome !== undefined) this.#modelCalls.inc({ provider, model, outcome })
        for (const [type, count] of Object.entries(tokens)) this.#tokens.inc({ provider, model, type }, count)
        if (cost > 0) this.#cost.inc({ provider, model }, cost)
      }),
      live.driver.subscribe((event) => {
        if (event.type === 'delta' || event.type === 'partial') this.#countDelta(event.kind)
      }),
      live.onCommand(({ op, ack }) => {
        const outcome = ack.ok ? 'ok' : (ack.error?.type ?? 'failed')
        // The name of an unknown operation comes from the client, and would make unbounded labels.
        this.#commands.inc({ op: outcome === 'invalid-command' ? 'invalid' : op, outcome })
        if (outcome === 'storage-failed' || outcome === 'outcome-unknown' || outcome === 'fenced')
          this.#storageFailures.inc({ type: outcome })
      }),
    ]
    return () => {
      for (const stop of stops) stop()
    }
  }

  /** There are tens of thousands per second, so its labels are looked up once. */
  #countDelta(kind: string): void {
    const known = this.#deltaKinds.get(kind)
    if (known) known.inc()
    else this.#deltaKinds.set(kind, this.#deltas.labels(kind)).get(kind)?.inc()
  }

  requestDone({ method, route, status, seconds }: FinishedRequest): void {
    this.#requests.observe({ method, route, status: String(status) }, seconds)
  }

  metricsText(): Promise<string> {
    return this.#registry.metrics()
  }

  close(): void {
    this.#loopDelay.disable()
    this.#registry.clear()
  }

  #counter<Label extends string>(name: string, help: string, labelNames: Label[]): Counter<Label> {
    return new Counter({ name: `tapetree_${name}`, help, labelNames, registers: [this.#registry] })
  }

  #gauge(name: string, help: string, read: () => number): void {
    const collect = (): void => gauge.set(read())
    const gauge: Gauge = new Gauge({ name: `tapetree_${name}`, help, registers: [this.#registry], collect })
  }

  /** Since the last read. */
  #gaugeLoopDelay(): void {
    const delay = this.#loopDelay
    const gauge = new Gauge({
      name: 'tapetree_event_loop_delay_seconds',
      help: 'Delay of the event loop, since the last read.',
      // The label `quantile` is for summaries only.
      labelNames: ['percentile'],
      registers: [this.#registry],
      collect: () => {
        for (const percentile of [50, 99]) gauge.set({ percentile }, delay.percentile(percentile) / 1e9)
        gauge.set({ percentile: 100 }, delay.max / 1e9)
        delay.reset()
      },
    })
  }
}
