// In the bundle this stands for `Intl.Segmenter` in the code of the screen: see late-unicode.ts.

/** Each of these characters is shown by itself, whatever of them stands beside it. */
export const plainText =
  /^[\u0020-\u007e\u00a0-\u00ac\u00ae-\u02ff\u2010-\u2027\u2030-\u205e\u2190-\u22ff\u2500-\u25ff]*$/

/** Makes the real one with the first text that is not plain. */
export function lateSegmenter(
  locale?: string,
  options?: Intl.SegmenterOptions,
): { segment: (text: string) => Iterable<Intl.SegmentData> & Pick<Intl.Segments, 'containing'> } {
  let made: Intl.Segmenter | undefined
  const isOfGraphemes = (options?.granularity ?? 'grapheme') === 'grapheme'
  return {
    segment: (text) =>
      isOfGraphemes && plainText.test(text)
        ? plainSegments(text)
        : (made ??= new Intl.Segmenter(locale, options)).segment(text),
  }
}

function plainSegments(text: string): Iterable<Intl.SegmentData> & Pick<Intl.Segments, 'containing'> {
  const segments = Array.from(text, (segment, index) => ({ segment, index, input: text }))
  return Object.assign(segments, { containing: (at = 0) => segments[Math.trunc(at)] as Intl.SegmentData })
}

/** An expression that is compiled when it is first used. */
export function lateExpression(source: string): Pick<RegExp, 'test'> {
  let made: RegExp | undefined
  return { test: (text) => (made ??= new RegExp(source, 'v')).test(text) }
}
