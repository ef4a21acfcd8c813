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

/** Google: `"retryDelay": "34.07s"`. OpenAI: `Please try again in 6m0.5s.` or `in 20ms.` */
function fromWords(text: string): number | undefined {
  const google = /"retryDelay":\s*"(\d+(?:\.\d+)?)s"/.exec(text)
  if (google) return Math.ceil(Number(google[1]) * 1000)
  const openai = /try again in (?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+)ms)?/i.exec(text)
  if (!openai?.slice(1).some(Boolean)) return undefined
  const [hours = 0, minutes = 0, seconds = 0, milliseconds = 0] = openai.slice(1).map((each) => Number(each ?? 0))
  return Math.ceil(((hours * 60 + minutes) * 60 + seconds) * 1000 + milliseconds)
}
