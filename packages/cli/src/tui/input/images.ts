import { readFile, stat } from 'node:fs/promises'
import { basename, extname, isAbsolute, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { harmlessLine } from '../../text/harmless.ts'
import type { Image } from './clipboard-image.ts'

const mediaTypes: Record<string, string> = {
  '.png': 'image/png',
  '.jpg': 'image/jpeg',
  '.jpeg': 'image/jpeg',
  '.gif': 'image/gif',
  '.webp': 'image/webp',
}

const maxBytes = 20 * 1024 * 1024

export interface ImagesOptions {
  /** The folder on this machine that paths are relative to. */
  cwd: () => string
  home: string
  env: NodeJS.ProcessEnv
  /** Stores an image in the session and returns its id. */
  keep: (image: Image) => Promise<string>
}

/** The images of the current draft. Each has a placeholder in the text; without its placeholder it is not sent. */
export class Images {
  readonly #options: ImagesOptions
  #marked = new Map<string, Image>()

  constructor(options: ImagesOptions) {
    this.#options = options
  }

  /** The placeholder to insert; undefined if this is not the path of an image. */
  async attach(pasted: string): Promise<string | undefined> {
    const path = pathIn(pasted, this.#options)
    const mediaType = path === undefined ? undefined : mediaTypes[extname(path).toLowerCase()]
    if (path === undefined || mediaType === undefined) return undefined
    const found = await stat(path).catch(() => undefined)
    if (!found?.isFile()) return undefined
    const name = harmlessLine(basename(path))
    if (found.size > maxBytes) throw new Error(`${name} has ${found.size} bytes; the limit for images is ${maxBytes}.`)
    return this.#mark(name, { bytes: await readFile(path), mediaType })
  }

  /** The placeholder of the image in the clipboard of this machine; undefined if there is none. */
  async attachClipboard(): Promise<string | undefined> {
    const { clipboardImage } = await import('./clipboard-image.ts')
    const image = await clipboardImage({ env: this.#options.env, maxBytes })
    return image && this.#mark('from the clipboard', image)
  }

  #mark(name: string, image: Image): string {
    const mark = `[image ${this.#marked.size + 1}: ${name}]`
    this.#marked.set(mark, image)
    return mark
  }

  /**
   * Loads images that the text names as `@path`, stores all images of the text, and returns their ids. Stores them only now, because the
   * session could change until now.
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

  /** They have been sent. */
  clear(): void {
    this.#marked = new Map()
  }
}

const namedImage = /(?<=^|\s)@(?:"([^"\n]+\.(?:png|jpe?g|gif|webp))"|(\S+\.(?:png|jpe?g|gif|webp)))(?=\s|$)/gi

/** Accepts paths as terminals paste dropped files: quoted, with escaped spaces, or as a URL. */
function pathIn(pasted: string, { cwd, home }: Pick<ImagesOptions, 'cwd' | 'home'>): string | undefined {
  const line = pasted.trim()
  if (line === '' || line.includes('\n')) return undefined
  if (line.startsWith('file://')) return fileOf(line)
  const bare = /^(['"]).*\1$/.test(line) ? line.slice(1, -1) : line.replaceAll(/\\(.)/g, '$1')
  const path = bare.startsWith('~/') ? join(home, bare.slice(2)) : bare
  return isAbsolute(path) ? path : join(cwd(), path)
}

function fileOf(url: string): string | undefined {
  try {
    return fileURLToPath(url)
  } catch {
    // Not a file URL, so not a path.
    return undefined
  }
}
