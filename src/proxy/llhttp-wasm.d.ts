declare module 'undici/lib/llhttp/llhttp-wasm.js' {
  /** llhttp 9 compiled to WebAssembly, as undici carries it for its own client. */
  const bytes: Uint8Array
  export = bytes
}
