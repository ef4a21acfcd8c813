/** What a program in a terminal does at least: it reads a key and writes it. */
process.stdin.setRawMode(true)
process.stdin.on('data', (data: Buffer) => {
  // Ctrl-U begins a new line, as it does in the chat.
  process.stdout.write(data[0] === 0x15 ? '\r\u001b[2K' : data)
})
process.stdout.write('ready\r\n')
