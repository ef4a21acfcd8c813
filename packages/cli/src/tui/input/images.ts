import { readFile, stat } from 'node:fs/promises'
import { basename, extname, isAbsolute, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { harmlessLine } from '../../text/harmless.ts'

const mediaTypes: Record<string, string> = {
  '.png': 'image/png',
  '.jpg': 'image/jpeg',
  '.jpeg': 'image/jpeg',
  '.gif': 'image/gif',
  '.webp': 'image/webp',
}

const maxBytes = 20 * 1024 * 1024

export interface ImagesOptions {
  cwd: string
  home: string
  /** Keeps an image in the session and gives its id. */
  keep: (image: Image) => Promise<string>
}

interface Image {
  bytes: Uint8Array
  mediaType: string
}

/** The images of the message that is being written. Each stands in the text as a mark; without its mark it is not sent. */
export class Images {
  readonly #options: ImagesOptions
  #marked = new Map<string, Image>()

  constructor(options: ImagesOptions) {
    this.#options = options
  }

  /** The mark to put into the text; undefined where this is no path of an image. */
  async attach(pasted: string): Promise<string | undefined> {
    const path = pathIn(pasted, this.#options)
    const mediaType = path === undefined ? undefined : mediaTypes[extname(path).toLowerCase()]
    if (path === undefined || mediaType === undefined) return undefined
    const found = await stat(path).catch(() => undefined)
    if (!found?.isFile()) return undefined
    const name = harmlessLine(basename(path))
    if (found.size > maxBytes) throw new Error(`${name} has ${found.size} bytes. An image may have up to ${maxBytes}.`)
    const bytes = await readFile(path)
    const mark = `[image ${this.#marked.size + 1}: ${name}]`
    this.#marked.set(mark, { bytes, mediaType })
    return mark
  }

  /**
   * Takes in images that the text names as `@path`, keeps all that it shows, and gives their ids. They are kept only now, because until now
   * another session could be chosen.
   */
  async idsIn(text: string): Promise<{ text: string; imageIds: string[] }> {
    let marked = text
    for (const [whole, quoted, plain] of text.matchAll(namedImage)) {
      const mark = await this.attach(quoted ?? plain ?? '')
      if (mark !== undefined) marked = marked.replace(whole, mark)
    }
    const imageIds: string[] = []
    for (const [mark, image] of this.#marked) {
      if (marked.includes(mark)) imageIds.push(await this.#options.keep(image))
    }
    return { text: marked, imageIds }
  }

  /** They have gone out. */
  clear(): void {
    this.#marked = new Map()
  }
}

const namedImage = /(?<=^|\s)@(?:"([^"\n]+\.(?:png|jpe?g|gif|webp))"|(\S+\.(?:png|jpe?g|gif|webp)))(?=\s|$)/gi

/** As terminals paste a file that is dropped on them: quoted, with escaped blanks, or as a URL. */
function pathIn(pasted: string, { cwd, home }: Pick<ImagesOptions, 'cwd' | 'home'>): string | undefined {
  const line = pasted.trim()
  if (line === '' || line.includes('\n')) return undefined
  if (line.startsWith('file://')) return fileOf(line)
  const bare = /^(['"]).*\1$/.test(line) ? line.slice(1, -1) : line.replaceAll(/\\(.)/g, '$1')
  const path = bare.startsWith('~/') ? join(home, bare.slice(2)) : bare
  return isAbsolute(path) ? path : join(cwd, path)
}

function fileOf(url: string): string | undefined {
  try {
    return fileURLToPath(url)
  } catch {
    // Not a URL of a file, so not a path.
    return undefined
  }
}
