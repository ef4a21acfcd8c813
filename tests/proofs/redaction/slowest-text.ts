import { families } from '../../../packages/redact/src/families.ts'
import type { SecretFamily } from '../../../packages/redact/src/family.ts'
import type { Redactor } from '../../../packages/redact/src/redactor.ts'
import { pick, plant, secretShapes } from '../../../packages/redact/src/testing/planted-secrets.ts'

/** A text that is one sequence of pieces, repeated to the wanted length. */
export interface HostileText {
  family: string
  pieces: readonly string[]
  nsPerCharacter: number
}

export interface SearchOptions {
  redactor: Redactor
  random: () => number
  /** Mutations tried for each family, and for each of the slowest texts afterwards. */
  stepsPerFamily: number
  finalSteps: number
}

/** How many of the slowest texts of all families are climbed further and returned. */
const finalists = 12
const trialLength = 40_000

/**
 * Searches for the text that takes the longest to redact for its length. Each family starts from texts built of its own parts: its
 * anchors, near misses and planted secrets, repeated, joined and nested. From the slowest of them a hill climb mutates the pieces.
 */
export function findSlowestTexts({ redactor, random, stepsPerFamily, finalSteps }: SearchOptions): HostileText[] {
  const measure = (pieces: readonly string[]): number => nsPerCharacter(redactor, repeated(pieces, trialLength))
  const climb = (from: HostileText, parts: readonly string[], steps: number): HostileText => {
    let best = from
    for (let step = 0; step < steps; step++) {
      const pieces = mutate(best.pieces, parts, random)
      let time = measure(pieces)
      // A pause of the machine looks like a slow text: the second time counts.
      if (time > best.nsPerCharacter) time = Math.min(time, measure(pieces))
      if (time > best.nsPerCharacter) best = { ...best, pieces, nsPerCharacter: time }
    }
    return best
  }
  const everyPart = families.flatMap((family) => partsOf(family, random))
  const found = families.map((family) => {
    const parts = [...partsOf(family, random), ...fillers]
    const starts = startsOf(family, random).map((pieces) => ({
      family: family.name,
      pieces,
      nsPerCharacter: measure(pieces),
    }))
    const slowest = starts.reduce((left, right) => (right.nsPerCharacter > left.nsPerCharacter ? right : left))
    return climb(slowest, parts, stepsPerFamily)
  })
  return found
    .sort(slowestFirst)
    .slice(0, finalists)
    .map((text) => climb(text, [...everyPart, ...fillers, ...fillers], finalSteps))
    .sort(slowestFirst)
}

function slowestFirst(left: HostileText, right: HostileText): number {
  return right.nsPerCharacter - left.nsPerCharacter
}

export function repeated(pieces: readonly string[], length: number): string {
  const once = pieces.join('')
  return once === '' ? ' '.repeat(length) : once.repeat(Math.ceil(length / once.length)).slice(0, length)
}

/** CPU time of redacting the text, for each of its characters. */
export function nsPerCharacter(redactor: Redactor, text: string): number {
  return (cpuMs(() => redactor.text(text)) * 1_000_000) / text.length
}

/** User and system together: each alone is an estimate, and so is the time of a single thread, which is known in steps of milliseconds. */
export function cpuMs(work: () => void): number {
  const start = process.cpuUsage()
  work()
  const { user, system } = process.cpuUsage(start)
  return (user + system) / 1000
}

/** What joins a name and a value, ends a value or keeps one going. */
const fillers = [
  ...['', '-', '--', '_', '.', '=', ':', ',', '>', '&', '@', '/', '%', '~', '"', "'", '\\', ' ', '\n', '\t', '(', '['],
  ...['="', "='", ': "', ' = ', '=> ', ':=', '\\"', '": "', '">', '%2B', '%3D', '\\n', '\u001b[0m', '\u00e9', '$', '*'],
  ...['a', '1', 'A', 'a1', 'A1b2', 'a1b2c3d4', '0f', 'Zz9-', 'eyJ', 'word', 'aB3$', 'x1.'],
]
const lengths = [2, 4, 7, 15, 16, 20, 31, 32, 33, 40, 63, 64, 100, 128, 129, 256, 300, 513, 2000, 4096, 8000]

/** The anchors of a family, what begins like them, and secrets of its shape: whole, cut and with a wrong character. */
function partsOf(family: SecretFamily, random: () => number): string[] {
  const shapes = secretShapes.filter((shape) => shape.family === family.name)
  const planted = shapes.flatMap((shape) => [plant(shape, random), plant(shape, random)])
  const texts = planted.flatMap(({ text, secret }) => [text, secret])
  return [
    ...family.anchors,
    ...family.anchors.map((anchor) => anchor.slice(0, -1)),
    ...texts,
    ...texts.map((text) => text.slice(0, Math.floor(random() * text.length))),
    ...texts.map((text) => `${text}${pick(fillers, random)}`),
    ...texts.map((text) => {
      const index = Math.floor(random() * text.length)
      return text.slice(0, index) + pick(fillers, random) + text.slice(index + 1)
    }),
  ]
}

function startsOf(family: SecretFamily, random: () => number): string[][] {
  const anchor = pick(family.anchors, random)
  const parts = partsOf(family, random)
  const run = pick(fillers, random).repeat(pick(lengths, random))
  return [
    [anchor],
    ['-', anchor],
    [' ', anchor],
    [anchor, '="', 'a1'],
    [anchor, '=', 'A1b2', '.'],
    ['-', anchor, 'a1'.repeat(20)],
    [anchor, run],
    [anchor.repeat(30), run, '.'],
    [anchor, pick(parts, random)],
    [pick(parts, random), pick(fillers, random)],
    [anchor.repeat(10), pick(parts, random)],
  ]
}

function mutate(pieces: readonly string[], parts: readonly string[], random: () => number): string[] {
  const copy = [...pieces]
  const index = Math.floor(random() * copy.length)
  const piece = copy[index] ?? ''
  const part = pick(random() < 0.5 ? parts : fillers, random)
  switch (Math.floor(random() * 7)) {
    case 0:
      copy[index] = part
      break
    case 1:
      copy.splice(index, 0, part)
      break
    case 2:
      if (copy.length > 1) copy.splice(index, 1)
      break
    case 3:
      copy[index] = piece.repeat(pick(lengths, random)).slice(0, 10_000)
      break
    case 4:
      copy[index] = piece.slice(0, Math.floor(random() * piece.length))
      break
    case 5: {
      // Nested: the part stands inside of the piece.
      const place = Math.floor(random() * piece.length)
      copy[index] = (piece.slice(0, place) + part + piece.slice(place)).slice(0, 10_000)
      break
    }
    default:
      copy.splice(index, 1, ...copy.slice(0, 6), part)
  }
  return copy.slice(0, 40)
}
