import {
  trace,
  type Context,
  type Span,
  type SpanOptions,
  type SpanStatus,
  type TracerProvider,
} from '@opentelemetry/api'

export interface KeptSpan {
  name: string
  parent: string | undefined
  attributes: Record<string, unknown>
  startTime: number
  endTime: number | undefined
  status: SpanStatus | undefined
}

/** Records every span, in start order. */
export function memoryTracer(): { provider: TracerProvider; spans: KeptSpan[] } {
  const spans: KeptSpan[] = []
  const names = new Map<Span, string>()
  const startSpan = (name: string, { attributes = {}, startTime }: SpanOptions = {}, context?: Context): Span => {
    const around = context && trace.getSpan(context)
    const kept: KeptSpan = {
      name,
      parent: around && names.get(around),
      attributes: { ...attributes },
      startTime: Number(startTime),
      endTime: undefined,
      status: undefined,
    }
    spans.push(kept)
    const span = {
      setAttribute: (key: string, value: unknown) => ((kept.attributes[key] = value), span),
      setAttributes: (more: object) => (Object.assign(kept.attributes, more), span),
      setStatus: (status: SpanStatus) => ((kept.status = status), span),
      end: (time: number) => void (kept.endTime = time),
    } as unknown as Span
    names.set(span, name)
    return span
  }
  return { spans, provider: { getTracer: () => ({ startSpan }) } as unknown as TracerProvider }
}
