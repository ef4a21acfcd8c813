const [start, end] = ['<think>', '</think>'] as const

/** Splits text that begins with `<think>…</think>` into reasoning and text. Tags may be cut anywhere between two deltas. */
export class ThinkTags {
  #state: 'before' | 'inside' | 'behind' | 'outside' = 'before'
  /** Text that may turn out to be part of a tag, or blank space around one. */
  #held = ''

  read(delta: string): { reasoning: string; text: string } {
    if (this.#state === 'outside') return { reasoning: '', text: delta }
    this.#held += delta
    let reasoning = ''
    if (this.#state === 'before') {
      const shown = this.#held.trimStart()
      if (start.startsWith(shown)) return { reasoning, text: '' }
      if (!shown.startsWith(start)) return { reasoning, text: this.#leave() }
      this.#state = 'inside'
      this.#held = shown.slice(start.length).replace(/^\n/, '')
    }
    if (this.#state === 'inside') {
      const place = this.#held.indexOf(end)
      if (place === -1) return { reasoning: this.#takeSafe(), text: '' }
      reasoning = this.#held.slice(0, place).replace(/\n$/, '')
      this.#held = this.#held.slice(place + end.length)
      this.#state = 'behind'
    }
    this.#held = this.#held.trimStart()
    return { reasoning, text: this.#held === '' ? '' : this.#leave() }
  }

  /** What was held back. A tag that never ended leaves reasoning. */
  flush(): { reasoning: string; text: string } {
    const isInside = this.#state === 'inside'
    const held = this.#leave()
    return isInside ? { reasoning: held, text: '' } : { reasoning: '', text: held }
  }

  #leave(): string {
    const held = this.#held
    this.#held = ''
    this.#state = 'outside'
    return held
  }

  /** All but an ending that may be the beginning of the end tag, or the line break before it. */
  #takeSafe(): string {
    const tail = new RegExp(`\\n?(?:${Array.from(end, (_, length) => end.slice(0, length)).join('|')})$`)
    const at = tail.exec(this.#held)?.index ?? this.#held.length
    const safe = this.#held.slice(0, at)
    this.#held = this.#held.slice(at)
    return safe
  }
}
