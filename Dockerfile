# docker build -t focalcal . && docker run --rm -v "$PWD/results:/focalcal/results" focalcal
# For a GPU: --build-arg TORCH_INDEX=https://pypi.org/simple, and docker run --gpus all.
# Apptainer: apptainer build focalcal.sif docker-daemon://focalcal:latest
FROM python:3.11-slim-bookworm
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
WORKDIR /focalcal
COPY requirements.txt requirements.lock ./
RUN pip install --no-cache-dir --no-deps --require-hashes --requirement requirements.lock \
    && pip install --no-cache-dir --index-url "$TORCH_INDEX" --extra-index-url https://pypi.org/simple \
        $(grep --extended-regexp "^torch(vision)?==" requirements.txt)
COPY . .
RUN pip install --no-cache-dir --no-deps --editable .
ENTRYPOINT ["snakemake"]
CMD ["--cores", "all"]
