export interface RetryHint {
  headers: Readonly<Record<string, string | undefined>>
  /** What the provider said in its body, as text. */
  text: string
}

/** How long the provider asked us to wait, if it did: its headers first, then its words. */
export function retryAfterMs({ headers, text }: RetryHint, now: number): number | undefined {
  return fromMilliseconds(headers['retry-after-ms']) ?? fromHeader(headers['retry-after'], now) ?? fromWords(text)
}

const number = /^\s*\d+(?:\.\d+)?\s*$/

function fromMilliseconds(value: string | undefined): number | undefined {
  return value !== undefined && number.test(value) ? Math.ceil(Number(value)) : undefined
}

/** Seconds, or a date. */
function fromHeader(value: string | undefined, now: number): number | undefined {
  if (value === undefined) return undefined
  if (number.test(value)) return Math.ceil(Number(value) * 1000)
  // `Date.parse` takes nearly anything, also -5; a date has letters.
  const date = /[a-z]/i.test(value) ? Date.parse(value) : Number.NaN
  return Number.isNaN(date) ? undefined : Math.max(0, date - now)
}

/**
 * Google sends `"retryDelay": "34.07s"`. Others write it in a sentence: `try again in 6m0.5s`, `in 20ms`, `retry after 58
 * seconds`, `try again after 1 seconds`. A number without a unit is not a wait.
 */
function fromWords(text: string): number | undefined {
  const google = /"retryDelay":\s*"(\d+(?:\.\d+)?)s"/.exec(text)
  if (google) return Math.ceil(Number(google[1]) * 1000)
  const sentence = /\b(?:try again|retry) (?:in|after) ((?:\d{1,9}(?:\.\d{1,9})? ?[a-z]{1,12}[ ,]{0,2}){1,4})/i.exec(
    text,
  )
  let waitMs: number | undefined
  for (const [, amount, unit = ''] of (sentence?.[1] ?? '').matchAll(/(\d+(?:\.\d+)?) ?([a-z]+)/gi)) {
    const unitMs = unitsInMs.find(([pattern]) => pattern.test(unit))?.[1]
    if (unitMs === undefined) break
    waitMs = (waitMs ?? 0) + Number(amount) * unitMs
  }
  return waitMs === undefined ? undefined : Math.ceil(waitMs)
}

const unitsInMs: readonly [unit: RegExp, ms: number][] = [
  [/^(?:ms|milliseconds?)$/i, 1],
  [/^(?:s|secs?|seconds?)$/i, 1000],
  [/^(?:m|mins?|minutes?)$/i, 60_000],
  [/^(?:h|hrs?|hours?)$/i, 3_600_000],
  [/^(?:d|days?)$/i, 86_400_000],
]
