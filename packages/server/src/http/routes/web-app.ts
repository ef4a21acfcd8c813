import { readdirSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { extname, join } from 'node:path'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'

/** One file as it is sent. */
export interface WebAppFile {
  body: Uint8Array<ArrayBuffer>
  gzipped: Uint8Array<ArrayBuffer> | undefined
  type: string
}

const types: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.webmanifest': 'application/manifest+json',
}

/** The built web app. It knows its files when it is made, so no request can name another. */
export class WebApp {
  readonly #folder: string
  readonly #names: ReadonlySet<string>
  /** A build has about a megabyte. */
  readonly #files = new Map<string, Promise<WebAppFile>>()

  private constructor(folder: string, names: ReadonlySet<string>) {
    this.#folder = folder
    this.#names = names
  }

  /** Undefined if the folder has no build. */
  static in(folder: string): WebApp | undefined {
    try {
      const names = readdirSync(folder, { recursive: true, encoding: 'utf8' })
        .map((name) => name.replaceAll('\\', '/'))
        .filter((name) => !name.startsWith('.') && extname(name) in types)
      return names.includes('index.html') ? new WebApp(folder, new Set(names)) : undefined
    } catch {
      return undefined // A clone without a build has no folder.
    }
  }

  /** Undefined if the app has no such file. `name` is relative to the folder, with slashes. */
  async file(name: string): Promise<WebAppFile | undefined> {
    if (!this.#names.has(name)) return undefined
    const known = this.#files.get(name) ?? this.#read(name)
    this.#files.set(name, known)
    return known
  }

  async #read(name: string): Promise<WebAppFile> {
    const body = new Uint8Array(await readFile(join(this.#folder, name)))
    const gzipped = body.length > 1000 ? new Uint8Array(await promisify(gzip)(body)) : undefined
    return { body, gzipped, type: types[extname(name)] ?? 'application/octet-stream' }
  }
}

/** Beside the command's bundle, or in the package: `src/http/routes` and `dist/http/routes` are equally deep. */
export function findWebApp(): WebApp | undefined {
  const here = import.meta.dirname
  return WebApp.in(join(here, 'web-app')) ?? WebApp.in(join(here, '../../../web-app'))
}
