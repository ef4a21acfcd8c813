// Builds the documentation site into docs/.vitepress/dist: `npm run docs:build`. Installs docs/package-lock.json if that has changed.
import { buildSite, siteFolder } from './site/build.ts'
import { deadLinks } from './site/dead-links.ts'

await buildSite({ say: (line) => console.log(line) })
const dead = await deadLinks(siteFolder)
for (const link of dead) console.error(link)
console.log(`site: ${dead.length} dead links`)
process.exitCode = dead.length === 0 ? 0 : 1
