import { createReadStream, statSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { extname, join, resolve, sep } from 'node:path'

export interface StaticServer extends AsyncDisposable {
  url: string
}

const types: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.woff2': 'font/woff2',
  '.json': 'application/json',
}

/** Serves the files of a folder on loopback. */
export async function serveFolder(folder: string): Promise<StaticServer> {
  const root = resolve(folder)
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://localhost')
    const file = join(root, decodeURIComponent(pathname.endsWith('/') ? `${pathname}index.html` : pathname))
    const isFile = file.startsWith(root + sep) && statSync(file, { throwIfNoEntry: false })?.isFile() === true
    response.writeHead(isFile ? 200 : 404, { 'content-type': types[extname(file)] ?? 'text/plain' })
    if (isFile) createReadStream(file).pipe(response)
    else response.end('Not found')
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      await new Promise((done) => server.close(done))
    },
  }
}
