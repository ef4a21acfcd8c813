import { maxLookBehind } from './family.ts'
import { NameMemo } from './name-memo.ts'
import type { Scanner } from './scanner.ts'

/** Text that comes in pieces. What is given out, put together, is what redacting the whole would give. */
export interface RedactingStream {
  /** Takes a piece and gives what is decided by now: everything but what a secret may have begun with. */
  write(piece: string): string
  /** For when nothing comes for a while: what is decided by now. What a secret may have begun with stays held. */
  catchUp(): string
  /** The rest; the stream may be used again for another text. */
  end(): string
}

/** One stage after the other. */
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

/** Holds back at most as much as the longest secret: some 33,000 characters inside a private key, next to nothing elsewhere. */
class Stage implements RedactingStream {
  readonly #scanner: Scanner
  /** What is looked back at, and from `#from` on what is held. */
  #text = ''
  #from = 0
  /** Where in `#text` the last secret ended, or a negative number. */
  #afterSecret = -1
  /** How much of the text came before `#text`. */
  #offset = 0
  readonly #names = new NameMemo()
  /** Not looked at yet, while much is held: looking at the same text for every little piece would take its square in time. */
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

/** Every byte that is not part of a secret comes out as it was, text or not. */
export class ByteStream implements RedactingByteStream {
  readonly #text: TextStream

  constructor(scanners: readonly Scanner[]) {
    this.#text = new TextStream(scanners)
  }

  write(piece: Uint8Array): Uint8Array {
    // Every byte as one character: what secrets are made of is the same in ASCII and UTF-8.
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
