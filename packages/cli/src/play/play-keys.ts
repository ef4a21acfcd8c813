export type PlayAction =
  | { type: 'pause' }
  | { type: 'step' }
  | { type: 'seek'; events: number }
  | { type: 'speed'; by: 1 | -1 }
  | { type: 'quit' }
  | { type: 'interrupt' }

const seekEvents = 10

const keys: Record<string, PlayAction> = {
  ' ': { type: 'pause' },
  '.': { type: 'step' },
  '+': { type: 'speed', by: 1 },
  '=': { type: 'speed', by: 1 },
  '-': { type: 'speed', by: -1 },
  q: { type: 'quit' },
  '\u0003': { type: 'interrupt' },
  '\u001b[C': { type: 'seek', events: seekEvents },
  '\u001bOC': { type: 'seek', events: seekEvents },
  '\u001b[D': { type: 'seek', events: -seekEvents },
  '\u001bOD': { type: 'seek', events: -seekEvents },
}

/** Typed input, perhaps several keys at a time. */
export function actionsIn(typed: string): PlayAction[] {
  // oxlint-disable-next-line no-control-regex
  const pressed = typed.match(/\u001b(?:\[[0-9;]*|O)?[A-Za-z~]|[^]/gu) ?? []
  return pressed.flatMap((key) => keys[key] ?? [])
}

const speeds = [0.25, 0.5, 1, 2, 5, 10, 20, 50, Infinity]

/** The next speed up or down. */
export function nextSpeed(speed: number, by: 1 | -1): number {
  const next = by > 0 ? speeds.find((each) => each > speed) : speeds.findLast((each) => each < speed)
  return next ?? speed
}

export function speedText(speed: number): string {
  return speed === Infinity ? 'max' : `${speed}×`
}
