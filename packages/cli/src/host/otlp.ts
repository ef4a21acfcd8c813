import type { TracerProvider } from '@opentelemetry/api'
import type { LiveSessionsOptions } from '@tapetree/server'
import { settledWithin } from '@tapetree/session/util/deadline'
import { textOption, type Invocation } from '../command-line/command.ts'
import { usageFailure } from '../command-line/failure.ts'
import { version } from '../command-line/version.ts'
import { harmlessLine } from '../text/harmless.ts'

export interface Traces {
  provider: TracerProvider
  /** Creates the spans of a session. */
  observe: NonNullable<LiveSessionsOptions['observers']>[number]
  /** Sends the last spans. Gives up after this time. */
  close(withinMs: number): Promise<void>
}

/**
 * Sends traces to an OpenTelemetry collector by OTLP over HTTP, as JSON. Headers, such as those of a hosted collector, come from
 * `OTEL_EXPORTER_OTLP_HEADERS`, the name of the service and more attributes from `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES`.
 * `say` gets what goes wrong, a message each.
 */
export async function openTraces(url: string, say: (message: string) => void): Promise<Traces> {
  const [{ diag, DiagLogLevel }, sdk, resources, { OTLPTraceExporter }, { tracing }] = await Promise.all([
    import('@opentelemetry/api'),
    import('@opentelemetry/sdk-trace'),
    import('@opentelemetry/resources'),
    import('@opentelemetry/exporter-trace-otlp-http'),
    import('@tapetree/server'),
  ])
  const tell = (message: string): void => say(message)
  diag.setLogger(
    { error: tell, warn: tell, info: tell, debug: tell, verbose: tell },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  )
  const own = resources.resourceFromAttributes({ 'service.name': 'tapetree', 'service.version': version })
  const detected = resources.detectResources({ detectors: [resources.envDetector] })
  const provider = new sdk.TracerProvider({
    resource: resources.defaultResource().merge(own).merge(detected),
    sampler: new sdk.ParentBasedSampler({ root: new sdk.AlwaysOnSampler() }),
    spanProcessors: [new sdk.BatchSpanProcessor({ exporter: new OTLPTraceExporter({ url }) })],
  })
  return {
    provider,
    observe: tracing({ provider }),
    close: async (withinMs) => {
      const closed = provider.shutdown().catch((error: unknown) => say(String(error)))
      if ((await settledWithin(closed, { ms: withinMs })) === 'late') {
        say(`The last spans could not be sent to ${new URL(url).origin} in time.`)
      }
    },
  }
}

/**
 * The URL for traces from `--otlp`: below the base URL of a collector, as `OTEL_EXPORTER_OTLP_ENDPOINT` has it, or that URL itself.
 * Undefined without the option.
 */
export function traceUrlOf(invocation: Invocation): string | undefined {
  const given = textOption(invocation, 'otlp')
  if (given === undefined) return undefined
  const url = URL.parse(given)
  if (!url || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    throw usageFailure(
      `--otlp must be a URL such as http://localhost:4318, not ${JSON.stringify(harmlessLine(given))}.`,
    )
  }
  if (!url.pathname.endsWith('/v1/traces')) url.pathname = `${url.pathname.replace(/\/$/, '')}/v1/traces`
  return url.href
}
