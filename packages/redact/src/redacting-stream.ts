import { maxLookBehind } from './family.ts'
import { NameMemo } from './name-memo.ts'
import type { Scanner } from './scanner.ts'

/** Text that arrives in pieces. The outputs together equal the redacted whole. */
export interface RedactingStream {
  /** Takes a piece and returns the decided text: everything except a possible start of a secret. */
  write(piece: string): string
  /** For pauses in the input: returns the decided text. A possible start of a secret stays held back. */
  catchUp(): string
  /** The rest; the stream may be reused for another text. */
  end(): string
}

/** Applies one stage after the other. */
export class TextStream implements RedactingStream {
  readonly #stages: readonly Stage[]

  constructor(scanners: readonly Scanner[]) {
    this.#stages = scanners.map((scanner) => new Stage(scanner))
  }

  write(piece: string): string {
    return this.#stages.reduce((text, stage) => stage.write(text), piece)
  }

  catchUp(): string {
    return this.#stages.reduce((text, stage) => stage.write(text) + stage.catchUp(), '')
  }

  end(): string {
    return this.#stages.reduce((text, stage) => stage.write(text) + stage.end(), '')
  }
}

/**
 * Holds back at most the length of the longest secret: about 33,000 characters inside a private key, almost nothing
 * elsewhere.
 */
class Stage implements RedactingStream {
  readonly #scanner: Scanner
  /** The lookbehind text, and from `#from` on the held text. */
  #text = ''
  #from = 0
  /** Where in `#text` the last secret ended, or a negative number. */
  #afterSecret = -1
  /** The length of the text before `#text`. */
  #offset = 0
  readonly #names = new NameMemo()
  /** Deferred while much text is held: examining the same text for every small piece would take quadratic time. */
  #waiting = ''

  constructor(scanner: Scanner) {
    this.#scanner = scanner
  }

  write(piece: string): string {
    this.#waiting += piece
    const held = this.#text.length - this.#from
    return this.#waiting.length * 16 < held ? '' : this.#scan(false)
  }

  catchUp(): string {
    return this.#waiting === '' ? '' : this.#scan(false)
  }

  end(): string {
    const output = this.#scan(true)
    this.#text = ''
    this.#from = 0
    this.#afterSecret = -1
    this.#offset = 0
    return output
  }

  #scan(isWhole: boolean): string {
    const text = this.#text + this.#waiting
    this.#waiting = ''
    const { output, end, afterSecret } = this.#scanner.scan({
      text,
      offset: this.#offset,
      from: this.#from,
      afterSecret: this.#afterSecret,
      isWhole,
      names: this.#names,
    })
    const start = Math.max(0, end - maxLookBehind)
    this.#text = text.slice(start)
    this.#offset += start
    this.#from = end - start
    this.#afterSecret = afterSecret - start
    return output
  }
}

/** The same for bytes. */
export interface RedactingByteStream {
  write(piece: Uint8Array): Uint8Array
  catchUp(): Uint8Array
  end(): Uint8Array
}

/** Every byte outside of a secret is unchanged, text or not. */
export class ByteStream implements RedactingByteStream {
  readonly #text: TextStream

  constructor(scanners: readonly Scanner[]) {
    this.#text = new TextStream(scanners)
  }

  write(piece: Uint8Array): Uint8Array {
    // Every byte as one character: the characters of secrets are the same in ASCII and UTF-8.
    const { buffer, byteOffset, byteLength } = piece
    return Buffer.from(this.#text.write(Buffer.from(buffer, byteOffset, byteLength).toString('latin1')), 'latin1')
  }

  catchUp(): Uint8Array {
    return Buffer.from(this.#text.catchUp(), 'latin1')
  }

  end(): Uint8Array {
    return Buffer.from(this.#text.end(), 'latin1')
  }
}
