// Draws the pictures of docs/use.md: `node -C @tapetree/source scripts/terminal-pictures.ts`. Needs a build and chromium.
import { mkdir, writeFile } from 'node:fs/promises'
import { picture } from '../tests/terminal/picture.ts'
import { pictureScenes } from '../tests/terminal/picture-scenes.ts'

await mkdir('docs/images', { recursive: true })
for (const [name, scene] of Object.entries(pictureScenes)) {
  await writeFile(`docs/images/${name}.png`, await picture(await scene()))
  console.log(`docs/images/${name}.png`)
}
