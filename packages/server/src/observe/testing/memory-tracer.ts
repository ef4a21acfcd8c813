import {
  trace,
  type Context,
  type Span,
  type SpanContext,
  type SpanOptions,
  type SpanStatus,
  type TracerProvider,
} from '@opentelemetry/api'

export interface KeptSpan {
  name: string
  /** The name of the parent; of a parent outside of this process, its id. */
  parent: string | undefined
  traceId: string
  attributes: Record<string, unknown>
  startTime: number
  endTime: number | undefined
  status: SpanStatus | undefined
}

/** Records every span, in start order. */
export function memoryTracer(): { provider: TracerProvider; spans: KeptSpan[] } {
  const spans: KeptSpan[] = []
  const startSpan = (name: string, { attributes = {}, startTime }: SpanOptions = {}, context?: Context): Span => {
    const around = context && trace.getSpan(context)?.spanContext()
    const number = spans.length + 1
    const traceId = around?.traceId ?? number.toString(16).padStart(32, 'a')
    const spanContext: SpanContext = { traceId, spanId: number.toString(16).padStart(16, '0'), traceFlags: 1 }
    const kept: KeptSpan = {
      name,
      parent: around && (spans[Number.parseInt(around.spanId, 16) - 1]?.name ?? around.spanId),
      traceId,
      attributes: { ...attributes },
      startTime: Number(startTime),
      endTime: undefined,
      status: undefined,
    }
    spans.push(kept)
    const span = {
      spanContext: () => spanContext,
      updateName: (newName: string) => ((kept.name = newName), span),
      setAttribute: (key: string, value: unknown) => ((kept.attributes[key] = value), span),
      setAttributes: (more: object) => (Object.assign(kept.attributes, more), span),
      setStatus: (status: SpanStatus) => ((kept.status = status), span),
      end: (time = Date.now()) => void (kept.endTime = time),
    } as unknown as Span
    return span
  }
  return { spans, provider: { getTracer: () => ({ startSpan }) } as unknown as TracerProvider }
}
