const dark = matchMedia("(prefers-color-scheme: dark)");
const choose = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", choose);
choose();

SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#docs",
  deepLinking: true,
  docExpansion: "list",
  defaultModelsExpandDepth: 0,
  persistAuthorization: true,
  validatorUrl: null,  // no outside address
  responseInterceptor(response) {  // The curl lines show the address at which the page was opened.
    if (response.url.endsWith("/openapi.json")) {
      response.text = response.text.replaceAll("http://127.0.0.1:8000", location.origin);
    }
    return response;
  },
});
