// Plain JavaScript, because an old Node cannot read anything newer before it says what is wrong.
const [major, minor] = process.versions.node.split('.').map(Number)
if (major < 24 || (major === 24 && minor < 15)) {
  console.error(`tapetree needs Node 24.15 or newer; this is Node ${process.versions.node}.`)
  console.error('Linux and Windows on x64 get it with `npm ci`; elsewhere install the version in .node-version.')
  process.exit(1)
}
