import { lstat, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'

export interface InstalledPackage {
  name: string
  /** Of its files, added up. */
  bytes: number
  /** What its files and folders take up on this disk. */
  blockBytes: number
}

/** All packages below a folder, those within others too, the largest first. */
export async function installedPackages(folder: string): Promise<InstalledPackage[]> {
  const lock = JSON.parse(await readFile(join(folder, 'node_modules/.package-lock.json'), 'utf8')) as {
    packages: Record<string, unknown>
  }
  const places = Object.keys(lock.packages)
  const packages = await Promise.all(
    places.map(async (place) => ({
      name: place.replace(/^.*node_modules\//, ''),
      ...(await sizeBelow(join(folder, place))),
    })),
  )
  return packages.sort((left, right) => right.bytes - left.bytes)
}

async function sizeBelow(path: string): Promise<{ bytes: number; blockBytes: number }> {
  const stats = await lstat(path)
  const total = { bytes: stats.isFile() ? stats.size : 0, blockBytes: stats.blocks * 512 }
  if (!stats.isDirectory()) return total
  for (const name of await readdir(path)) {
    // Packages within this one are counted for themselves.
    if (name === 'node_modules') continue
    const { bytes, blockBytes } = await sizeBelow(join(path, name))
    total.bytes += bytes
    total.blockBytes += blockBytes
  }
  return total
}
