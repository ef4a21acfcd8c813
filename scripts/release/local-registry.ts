import { once } from 'node:events'
import { createReadStream } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { basename } from 'node:path'
import { npm, type PackedPackage } from './packages.ts'

export interface LocalRegistry extends AsyncDisposable {
  url: string
}

/**
 * A package registry on loopback that serves packed packages as if they were published. It redirects every other request to the
 * registry that npm is configured to use.
 */
export async function startLocalRegistry(packages: readonly PackedPackage[]): Promise<LocalRegistry> {
  const upstream = (await npm(['config', 'get', 'registry'])).trim()
  const byName = new Map(packages.map((each) => [each.manifest.name, each]))
  const byFile = new Map(packages.map((each) => [`/-/tarballs/${basename(each.file)}`, each]))
  const server = createServer((request, response) => {
    const path = request.url ?? '/'
    const tarball = byFile.get(path)
    const known = byName.get(decodeURIComponent(path.slice(1)))
    if (tarball) createReadStream(tarball.file).pipe(response)
    else if (known) response.setHeader('content-type', 'application/json').end(packument(known, url))
    else response.writeHead(302, { location: new URL(path.slice(1), upstream).href }).end()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

/** What a registry answers about a package: here, its only version. */
function packument({ manifest, file, integrity }: PackedPackage, url: string): string {
  const { name, version } = manifest
  const dist = { tarball: `${url}/-/tarballs/${basename(file)}`, integrity }
  return JSON.stringify({
    name,
    'dist-tags': { latest: version },
    versions: { [version]: { ...manifest, dist } },
  })
}
