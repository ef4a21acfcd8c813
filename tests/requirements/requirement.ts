/** One requirement of a specification, in our own words. A scenario proves it, unless it is open or excused. */
export interface Requirement {
  /** Document, section and a short name: `session-manager/8.2 no-tool-splitting`. */
  id: string
  /** What the specification requires, in one sentence. */
  says: string
  /** The specification lines that this sentence stands for. */
  lines: Lines
  /** How our design differs from the specification or makes it more precise. */
  settled?: string
  /** What is missing. An open requirement has no scenario yet. */
  open?: string
  /** Why we do not implement it. */
  excused?: string
}

/** Digests of specification lines by section heading. `scripts/requirements/specification.ts` defines a line and its digest. */
type Lines = Readonly<Record<string, readonly string[]>>

/** Digests of lines that describe no behavior, by section heading and kind. */
export type LinesWithoutBehavior = Readonly<Record<string, Readonly<Partial<Record<Kind, readonly string[]>>>>>

type Kind =
  | 'code syntax'
  | 'design question'
  | 'diagram part'
  | 'diagram syntax'
  | 'document summary'
  | 'file name'
  | 'non goal'
  | 'old code'
  | 'opening line'
  | 'other document'
  | 'section divider'
  | 'stated benefit'
  | 'table header'
  | 'type name'
  | 'type relation'
  | 'work figure'
  | 'work plan'

/** Everything that one specification document says. */
export interface Manifest {
  document: string
  requirements: readonly Requirement[]
  withoutBehavior: LinesWithoutBehavior
}
