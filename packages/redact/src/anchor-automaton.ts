/**
 * Finds every occurrence of many ASCII words, in one pass over the text and one table lookup for each character (Aho
 * and Corasick, 1975). A state is the longest suffix of the text so far that is a prefix of some word.
 *
 * The lookup uses the last seven bits of the character, which is faster than a check for other characters: the caller
 * must verify that the word really occurs.
 */
export class AnchorAutomaton<T> {
  /** The state after a character is at `(state << 7) | (character & 127)`; the first state is 0. */
  readonly next: Uint16Array | Uint32Array
  /** From this state on, states are at the end of a word. */
  readonly firstHit: number
  /** Whether all words are long enough for skipping to pay off. */
  readonly canSkip: boolean
  /** How far no word can begin, by two characters: see `skip`. */
  readonly #shifts: Uint8Array
  readonly #shortest: number
  readonly #depths: number[]
  readonly #hits: (readonly Hit<T>[])[]

  constructor(words: readonly (readonly [word: string, value: T])[]) {
    this.#shortest = Math.min(...words.map(([word]) => word.length))
    this.canSkip = this.#shortest >= minSkipLength
    this.#shifts = this.canSkip ? shiftsOf(words, this.#shortest) : new Uint8Array()
    const nodes = link(buildTrie(words))
    // States with hits go last, so that one comparison finds them.
    const states = [...nodes.filter(({ hits }) => hits.length === 0), ...nodes.filter(({ hits }) => hits.length > 0)]
    for (const [state, node] of states.entries()) node.state = state
    this.next = new (states.length > 65_535 ? Uint32Array : Uint16Array)(states.length << 7)
    for (const { state, fallback, children } of nodes) {
      // Where no word continues, the row of the fallback applies. It is complete by now, because it is shorter.
      if (fallback) this.next.copyWithin(state << 7, fallback.state << 7, (fallback.state + 1) << 7)
      for (const [code, child] of children) this.next[(state << 7) | code] = child.state
    }
    this.firstHit = states.length - nodes.filter(({ hits }) => hits.length > 0).length
    this.#depths = states.map(({ depth }) => depth)
    this.#hits = states.map(({ hits }) => hits)
  }

  /**
   * The next index at which a word may begin, for the first state: most of the text is never read (Wu and Manber,
   * 1994). The last two characters of a window as long as the shortest word determine how far it can move.
   */
  skip(text: string, from: number): number {
    const shifts = this.#shifts
    if (!this.canSkip) return from
    let last = from + this.#shortest - 1
    while (last < text.length) {
      // Always within the table.
      const shift = shifts[((text.charCodeAt(last - 1) & 127) << 7) | (text.charCodeAt(last) & 127)] as number
      if (shift === 0) break
      last += shift
    }
    return last - this.#shortest + 1
  }

  /** The length of the longest suffix of the text that is a prefix of a word. */
  depthOf(state: number): number {
    return this.#depths[state] ?? 0
  }

  /** The words that end here, the longest first. */
  hitsOf(state: number): readonly Hit<T>[] {
    return this.#hits[state] ?? []
  }
}

/** With shorter words there is almost nothing to skip. */
const minSkipLength = 6

function shiftsOf(words: readonly (readonly [string, unknown])[], shortest: number): Uint8Array {
  const farthest = Math.min(shortest - 1, 255)
  const shifts = new Uint8Array(1 << 14).fill(farthest)
  for (const [word] of words) {
    for (let end = 1; end < shortest; end++) {
      const pair = ((word.charCodeAt(end - 1) & 127) << 7) | (word.charCodeAt(end) & 127)
      shifts[pair] = Math.min(shifts[pair] ?? 0, shortest - 1 - end)
    }
  }
  return shifts
}

export interface Hit<T> {
  length: number
  value: T
}

interface Node<T> {
  readonly depth: number
  readonly children: Map<number, Node<T>>
  readonly hits: Hit<T>[]
  state: number
  /** The longest other state that is a suffix of this one. */
  fallback: Node<T> | undefined
}

function buildTrie<T>(words: readonly (readonly [string, T])[]): Node<T> {
  const newNode = (depth: number): Node<T> => ({ depth, children: new Map(), hits: [], state: 0, fallback: undefined })
  const root = newNode(0)
  for (const [word, value] of words) {
    let node = root
    for (let index = 0; index < word.length; index++) {
      const code = word.charCodeAt(index) & 127
      const child = node.children.get(code) ?? newNode(node.depth + 1)
      node.children.set(code, child)
      node = child
    }
    if (node !== root) node.hits.push({ length: word.length, value })
  }
  return root
}

/** Sets the fallback and the hits of every state. Returns the states, the shortest first. */
function link<T>(root: Node<T>): Node<T>[] {
  const nodes = [root]
  for (const node of nodes) {
    for (const [code, child] of node.children) {
      let fallback = node.fallback
      while (fallback && !fallback.children.has(code)) fallback = fallback.fallback
      child.fallback = fallback?.children.get(code) ?? root
      child.hits.push(...child.fallback.hits)
      nodes.push(child)
    }
  }
  return nodes
}
