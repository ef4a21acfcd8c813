/** One thing that a specification says and that a scenario must prove. */
export interface Requirement {
  /** Document, section and a short name: `session-manager/8.2 no-tool-splitting`. */
  id: string
  /** The words of the document: an item of its outline, a part of one, or several, one on each line. */
  quote: string
  /** What we do where the design settles it differently or more closely. */
  settled?: string
  /** The part that will do it, where that is not here yet. It is proved there. */
  deferred?: 'server' | 'terminal' | 'acp'
}

/** A heading of a document and what stands below it. */
export interface Section {
  heading: string
  items: string[]
}

/** A text of the document that no requirement has to quote. A heading: nothing below it has to be quoted for its sake. */
export interface Excuse {
  text: string
  reason: string
}

/** A document as far as the checker needs it. */
export interface Manifest {
  document: string
  requirements: readonly Requirement[]
  outline: readonly Section[]
  noBehaviour: readonly Excuse[]
}
